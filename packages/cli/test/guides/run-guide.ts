import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type GuideStep, readGuide } from "./read-guide.ts";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const PSQL = fileURLToPath(new URL("psql.mjs", import.meta.url));
const BETWEEN = "--- end of a block ---";

/**
 * Follows a guide in an empty folder, in one shell that stops at the first failure. Addresses are replaced by real
 * ones, and `npm install` by links to this repository; nothing else is changed. Returns what each `sh` block printed.
 */
export async function runGuide(
  name: string,
  addresses: ReadonlyMap<string, string>,
  variables: Record<string, string> = {},
): Promise<GuideRun> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-guide-"));
  const replaced = (text: string) =>
    [...addresses].reduce((changed, [from, to]) => changed.replaceAll(from, to), text).replaceAll(INSTALL, ":");
  try {
    linkPackages(folder);
    const steps = readGuide(name);
    for (const step of steps) if (step.kind === "file") writeFileSync(join(folder, step.name), replaced(step.text));
    const blocks = steps
      .filter((step) => step.kind === "run")
      .map(({ text }) => `${replaced(text)}\necho '${BETWEEN}'`);
    const { code, out, err } = await shell(`${PRELUDE}\n${blocks.join("\n")}`, folder, variables);
    return { code, err, printed: out.split(`${BETWEEN}\n`), steps };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface GuideRun {
  readonly code: number | null;
  readonly err: string;
  /** By `sh` block. */
  readonly printed: readonly string[];
  readonly steps: readonly GuideStep[];
}

export async function freePort(): Promise<number> {
  const socket = createServer();
  await new Promise<void>((resolve) => void socket.listen(0, "127.0.0.1", resolve));
  const { port } = socket.address() as AddressInfo;
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

/** Lines that a guide shows and its run did not print, in this order. */
export function unprinted({ printed, steps }: GuideRun): string[] {
  let block = -1;
  const missing: string[] = [];
  for (const step of steps) {
    if (step.kind === "run") block++;
    if (step.kind !== "printed") continue;
    let rest = printed[block] ?? "";
    for (const line of step.text.trim().split("\n")) {
      const found = patternOf(line).exec(rest);
      if (found === null) missing.push(line);
      else rest = rest.slice(found.index + found[0].length);
    }
  }
  return missing;
}

/** Spaces at the beginning do not count: a page cannot show the indentation of a list. How long a call waited depends on the machine. */
function patternOf(line: string): RegExp {
  const literal = line.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const timeless = literal.replace(/^Waited \d+\\\.\d s/, "Waited \\d+\\.\\d s");
  return new RegExp(`^\\s*${timeless.replaceAll("…", ".*")}$`, "m");
}

/** The tests do not publish the package. scripts/test-packages.mjs checks that the installation works. */
const INSTALL = /^npm install @slotkeeper\/cli(?: @slotkeeper\/client)?$/gm;

/** Raises the limit of open files to the hard limit: the doctor would report a low limit of this machine. */
const PRELUDE = "set -euo pipefail; ulimit -n \"$(ulimit -Hn)\"; trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT";

function linkPackages(folder: string): void {
  const bin = join(folder, "node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  mkdirSync(join(folder, "node_modules/@slotkeeper"));
  for (const name of ["postgres", "client"])
    symlinkSync(join(ROOT, "packages", name), join(folder, "node_modules/@slotkeeper", name));
  symlinkSync(join(ROOT, "packages/cli/bin/slotkeeper.mjs"), join(bin, "slotkeeper"));
  // A machine that runs the tests may have no psql.
  writeFileSync(join(bin, "psql"), `#!/bin/sh\nexec "${process.execPath}" "${PSQL}" "$@"\n`);
  chmodSync(join(bin, "psql"), 0o755);
}

function shell(
  script: string,
  cwd: string,
  variables: Record<string, string>,
): Promise<{ code: number | null; out: string; err: string }> {
  const clean = Object.entries(process.env).filter(([key]) => !key.startsWith("SLOTKEEPER_") && key !== "NODE_ENV");
  const path = `${join(cwd, "node_modules/.bin")}:${process.env["PATH"]}`;
  const env = { ...Object.fromEntries(clean), PATH: path, ...variables };
  const bash = spawn("bash", ["-c", script], { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let [out, err] = ["", ""];
  bash.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  bash.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => void bash.once("close", (code) => resolve({ code, out, err })));
}
