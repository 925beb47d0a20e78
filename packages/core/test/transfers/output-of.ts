import { type ChildProcess, spawn } from "node:child_process";

/** What the program wrote, once it has ended by itself; an error with what it complained about if it failed. */
export function outputOf(
  program: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [...flags, program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, errors] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`Exit ${code}: ${errors}`))));
  });
}
