// Runs the PostgreSQL tests on version 15 instead of the version from npm: it is the oldest supported version, and the
// one of Debian. `node scripts/test-postgres-15.mjs [arguments of vitest]`. It is part of the long suite, and CI need
// not have it installed. POSTGRES_BIN names the folder of another version. A server that already runs needs no script:
// `DATABASE_URL=postgres://… npx vitest run .pg.test`.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const bin = process.env.POSTGRES_BIN ?? "/usr/lib/postgresql/15/bin";
if (!existsSync(join(bin, "postgres"))) {
  console.error(`There is no PostgreSQL in ${bin}. Install it (apt-get install postgresql-15), or set POSTGRES_BIN.`);
  process.exit(2);
}
const { DATABASE_URL: _given, ...env } = process.env;
process.stdout.write(spawnSync(join(bin, "postgres"), ["--version"], { encoding: "utf8" }).stdout);
const tests = ["vitest", "run", ".pg.test", ...process.argv.slice(2)];
const { status } = spawnSync("npx", ["--no-install", ...tests], {
  env: { ...env, POSTGRES_BIN: bin },
  stdio: "inherit",
});
process.exit(status ?? 1);
