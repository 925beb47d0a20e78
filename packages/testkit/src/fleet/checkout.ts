import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cleanEnvironment } from "./clean-environment.ts";

/** The checkout that this file belongs to. Another one is given to compare two versions of the service. */
export const THIS_CHECKOUT = fileURLToPath(new URL("../../../..", import.meta.url));

/** The command of a checkout. It needs a build. */
export function commandIn(checkout: string): string {
  return join(checkout, "packages/cli/bin/slotkeeper.mjs");
}

/** Creates the schema of the version of that checkout. */
export async function migrateBy(checkout: string, dsn: string): Promise<void> {
  const env = { ...cleanEnvironment(), SLOTKEEPER_BACKEND__POSTGRES__DSN: dsn };
  await promisify(execFile)(process.execPath, [commandIn(checkout), "migrate"], { env });
}
