/** The ways to let one command at a time run on a machine. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Machine, type Wrapper } from "@slotkeeper/testkit/one-machine";

export type SubjectId = "slotkeeper" | "flock" | "sem" | "tsp" | "proper-lockfile";

export interface Subject {
  readonly id: SubjectId;
  readonly about: string;
  /** Makes the wrapper of a machine, with its own files. `undefined` for ours. */
  readonly prepare: () => { readonly wrapper: Wrapper | undefined; readonly close: () => void };
}

const LOCKFILE = fileURLToPath(new URL("lockfile-child.js", import.meta.url));

function inFolder(lineOf: (folder: string) => readonly string[], end: (folder: string) => void = () => {}) {
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "peer-"));
    const wrapper: Wrapper = (command) => [...lineOf(folder), ...command];
    const close = () => {
      end(folder);
      rmSync(folder, { recursive: true, force: true });
    };
    return { wrapper, close };
  };
}

export const SUBJECTS: readonly Subject[] = [
  { id: "slotkeeper", about: "slotkeeper exec --name", prepare: () => ({ wrapper: undefined, close: () => {} }) },
  { id: "flock", about: "flock of util-linux", prepare: inFolder((folder) => ["flock", join(folder, "lock")]) },
  {
    id: "sem",
    about: "GNU parallel --semaphore",
    prepare: inFolder((folder) => [
      "env",
      `PARALLEL_HOME=${folder}`,
      "sem",
      "--will-cite",
      "--fg",
      "--id",
      "one",
      "-j1",
    ]),
  },
  {
    id: "tsp",
    about: "task-spooler",
    prepare: inFolder(
      (folder) => ["env", `TS_SOCKET=${join(folder, "s")}`, "TMPDIR=" + folder, "tsp", "-nf"],
      (folder) => void spawnSync("tsp", ["-K"], { env: { ...process.env, TS_SOCKET: join(folder, "s") } }),
    ),
  },
  {
    id: "proper-lockfile",
    about: "proper-lockfile of npm, around a child process",
    prepare: inFolder((folder) => [process.execPath, LOCKFILE, join(folder, "lock")]),
  },
];

/** Runs `measure` on a machine of its own. */
export async function onMachine<T>(subject: Subject, measure: (machine: Machine) => Promise<T>): Promise<T> {
  const { wrapper, close } = subject.prepare();
  const machine = new Machine(1, wrapper);
  try {
    return await measure(machine);
  } finally {
    await machine.close();
    close();
  }
}
