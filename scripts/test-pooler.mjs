// Runs the PostgreSQL tests through a transaction pooler: PgBouncer with three server connections per database, so that
// consecutive statements of a client rarely use the same session. `npm run build`, then `node scripts/test-pooler.mjs
// [arguments of vitest]`. It is part of the long suite, and CI need not have it installed. PGBOUNCER names another
// program; DATABASE_URL names a server that already runs.
//
// Left out: tests that look at the server's own connections (costs, plans), and the tests of the test server.
import { spawn, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as tcpConnect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startPostgres } from "@slotkeeper/testkit/postgres";
import { freePort } from "../packages/testkit/bin/free-port.mjs";

const TESTS = [
  "packages/postgres/test/contract/",
  "packages/postgres/test/migrate/",
  "packages/postgres/test/pooler/",
  "packages/postgres/test/store/conformance",
  "packages/postgres/test/store/failures",
  "packages/postgres/test/store/listen",
  "packages/postgres/test/store/strictness",
  "packages/server/test/postgres.pg.test",
  "packages/cli/test/migrate.pg.test",
];
const POOL_SIZE = 3;
const NOBODY = 65_534;
const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/** The program, where Debian puts it or wherever the PATH has it. */
function findPgBouncer() {
  const places = process.env.PGBOUNCER ? [process.env.PGBOUNCER] : ["pgbouncer", "/usr/sbin/pgbouncer"];
  for (const place of places) {
    const { status, stdout } = spawnSync(place, ["--version"], { encoding: "utf8" });
    if (status === 0) return { program: place, version: stdout.split("\n", 1)[0] };
  }
  console.error(
    `There is no PgBouncer (${places.join(", ")}). Install it (apt-get install pgbouncer), or set PGBOUNCER.`,
  );
  process.exit(2);
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = tcpConnect(port, "127.0.0.1");
    socket.once("connect", () => resolve(socket.destroy() !== undefined)).once("error", () => resolve(false));
  });
}

/** Every database of the server under its own name; users and passwords as on the server. */
function settings(server, port, home) {
  return `[databases]
* = host=${server.hostname} port=${server.port || 5432}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(home, "users")}
logfile = ${join(home, "log")}
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
max_client_conn = 500
# The database of the test that has ended is gone; the next one has another name.
autodb_idle_timeout = 1
server_login_retry = 0.1
`;
}

async function startPooler(program, dsn, home) {
  const server = new URL(dsn);
  const port = await freePort();
  const [user, password] = [server.username, server.password].map(decodeURIComponent);
  const files = { "pgbouncer.ini": settings(server, port, home), users: `"${user}" "${password}"\n` };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text, { mode: 0o600 });
  if (asUser.uid !== undefined)
    for (const name of ["", ...Object.keys(files)]) chownSync(join(home, name), NOBODY, NOBODY);
  const pooler = spawn(program, ["-q", join(home, "pgbouncer.ini")], { ...asUser, stdio: "ignore", detached: true });
  const hasEnded = new Promise((resolve) => pooler.once("exit", () => resolve("ended")).once("error", resolve));
  const stop = () => {
    pooler.kill("SIGTERM");
    return hasEnded;
  };
  while (!(await isListening(port))) {
    if ((await Promise.race([hasEnded, pause(20)])) === undefined) continue;
    throw new Error(`PgBouncer did not start:\n${readFileSync(join(home, "log"), "utf8")}`);
  }
  server.host = `127.0.0.1:${port}`;
  return { dsn: server.href, stop };
}

function runTests(env) {
  const command = ["--no-install", "vitest", "run", ...TESTS, "--maxWorkers=1", ...process.argv.slice(2)];
  // In their own process group, so that a Ctrl-C reaches them once.
  const tests = spawn("npx", command, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  const interruptTests = () => process.kill(-(tests.pid ?? 0), "SIGINT");
  stopped.addEventListener("abort", interruptTests);
  return new Promise((resolve) => {
    tests.once("close", (status) => {
      stopped.removeEventListener("abort", interruptTests);
      resolve(status ?? 1);
    });
  });
}

const { program, version } = findPgBouncer();
console.log(version);
// Everything is removed when the tests have ended, also if they are interrupted.
const interrupt = new AbortController();
const stopped = interrupt.signal;
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => interrupt.abort());
const home = mkdtempSync(join(tmpdir(), "slotkeeper-pooler-"));
const given = process.env.DATABASE_URL;
const running = [];
try {
  const server = given === undefined ? await startPostgres() : { dsn: given, stop: () => {} };
  running.unshift(server);
  const pooler = await startPooler(program, server.dsn, home);
  running.unshift(pooler);
  process.exitCode = stopped.aborted ? 1 : await runTests({ DATABASE_URL: server.dsn, POOLER_URL: pooler.dsn });
} finally {
  for (const started of running) await started.stop();
  rmSync(home, { recursive: true, force: true });
}
