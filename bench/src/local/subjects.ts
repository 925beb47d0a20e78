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
  /** The program that it needs, and the package of Debian that has it. */
  readonly needs?: { readonly program: string; readonly debian: string };
  /** In the rows of kills. It needs ten seconds to notice that a holder was killed. */
  readonly machinesAtOnce?: number;
  /** Makes the wrapper of a machine, with its own files. `undefined` for ours. */
  readonly prepare: () => { readonly wrapper: Wrapper | undefined; readonly close: () => void };
}

const LOCKFILE = fileURLToPath(new URL("lockfile-child.js", import.meta.url));

function inFolder(
  lineOf: (folder: string) => readonly string[],
  { begin, end }: { readonly begin?: (folder: string) => void; readonly end?: (folder: string) => void } = {},
) {
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "peer-"));
    begin?.(folder);
    const wrapper: Wrapper = (command) => [...lineOf(folder), ...command];
    const close = () => {
      end?.(folder);
      rmSync(folder, { recursive: true, force: true });
    };
    return { wrapper, close };
  };
}

function taskSpooler(folder: string, args: readonly string[]): void {
  spawnSync("setsid", ["tsp", ...args], { env: { ...process.env, TS_SOCKET: join(folder, "s") }, stdio: "ignore" });
}

export const SUBJECTS: readonly Subject[] = [
  { id: "slotkeeper", about: "`slotkeeper exec`", prepare: () => ({ wrapper: undefined, close: () => {} }) },
  {
    id: "flock",
    about: "`flock` of util-linux",
    needs: { program: "flock", debian: "util-linux" },
    prepare: inFolder((folder) => ["flock", join(folder, "lock")]),
  },
  {
    id: "sem",
    about: "GNU `parallel --semaphore`",
    needs: { program: "sem", debian: "parallel" },
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
    needs: { program: "tsp", debian: "task-spooler" },
    prepare: inFolder(
      (folder) => ["env", `TS_SOCKET=${join(folder, "s")}`, "TMPDIR=" + folder, "tsp", "-nf"],
      // Its server stays in the group of the command that started it, and would be killed with that.
      { begin: (folder) => taskSpooler(folder, []), end: (folder) => taskSpooler(folder, ["-K"]) },
    ),
  },
  {
    id: "proper-lockfile",
    about: "`proper-lockfile` of npm, around a child process",
    machinesAtOnce: 10,
    prepare: inFolder((folder) => [process.execPath, LOCKFILE, join(folder, "lock")]),
  },
];

/** Why it cannot be measured here; `undefined` if it can. */
export function missing({ needs }: Subject): string | undefined {
  if (needs === undefined || spawnSync("which", [needs.program]).status === 0) return undefined;
  return `${needs.program} is not installed (package ${needs.debian} of Debian)`;
}

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
