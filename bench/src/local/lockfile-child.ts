/** Runs a command while it holds a lock of `proper-lockfile`: `lockfile-child FILE command…`. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import lockfile from "proper-lockfile";

const [file = "", command = "", ...args] = process.argv.slice(2);
writeFileSync(file, "", { flag: "a" });
const release = await lockfile.lock(file, { retries: { forever: true, minTimeout: 20, maxTimeout: 20 } });
const child = spawn(command, args, { stdio: "inherit" });
child.on("exit", (code) => {
  void release().then(() => process.exit(code ?? 1));
});
