import { spawnSync } from "node:child_process";
import { THIS_CHECKOUT } from "./checkout.ts";

/** Builds the command, and other projects: processes of the service run the build, as those of a user do. */
export function buildCommand(...others: readonly string[]): void {
  const options = { cwd: THIS_CHECKOUT, encoding: "utf8" } as const;
  const { status, stdout } = spawnSync("npx", ["--no-install", "tsc", "-b", "packages/cli", ...others], options);
  if (status !== 0) throw new Error(`The build failed:\n${stdout}`);
}
