import { spawnSync } from "node:child_process";
import { THIS_CHECKOUT } from "./checkout.ts";

/** What tests run as programs, as users do: the service and its command, the examples, and programs of this package. */
const PROJECTS = ["packages/cli", "packages/testkit", "packages/client/src/middleware", "examples"];

/** A global set-up of vitest. One build before all tests: several at the same time would read each other's unfinished files. */
export default function setup(): void {
  const options = { cwd: THIS_CHECKOUT, encoding: "utf8" } as const;
  const { status, stdout } = spawnSync("npx", ["--no-install", "tsc", "-b", ...PROJECTS], options);
  if (status !== 0) throw new Error(`The build failed:\n${stdout}`);
}
