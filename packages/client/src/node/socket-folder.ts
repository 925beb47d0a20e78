/**
 * Where the keeper of this machine and its users meet: a folder that only this user can enter. Node has no call that
 * reads the user of a connection, so the folder is the access control.
 *
 * FOLDER1  The folder belongs to this user, other users have no access, and no part of its path is a link. So no other
 *     user can take its place or read what is in it.
 * FOLDER2  Every socket path in it fits into the 103 bytes that all systems allow. Node 20 cuts a longer one without an
 *     error.
 */
import { lstatSync, mkdirSync, realpathSync, type Stats, statfsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { KeeperError } from "./keeper-error.ts";

/** What follows the name of the socket in the names of other files. */
export const FILE_SUFFIX = { holder: ".holder-", lease: ".lease-", log: ".log-", starting: ".starting" } as const;

const OWN_SUFFIX = /^\.(?:\d+|k[\da-f]{6}|starting|(?:holder|lease|log)-[\da-z]+(?:\.new)?)$/;

/** Whether a file beside the socket is one of ours. The folder may have others, which are never touched. */
export function isOwnFile(socket: string, name: string): boolean {
  const own = basename(socket);
  return name.startsWith(own) && OWN_SUFFIX.test(name.slice(own.length));
}

const LONGEST_PATH = 103;
/** The longest name that follows that of the socket: `.holder-`, an id and `.new`. */
const LONGEST_SUFFIX = 28;

/** The types of network file systems, from `statfs(2)`: sockets and renames do not work between their machines. */
const NETWORK_TYPES: ReadonlySet<number> = new Set([
  0x6969, // NFS
  0xff534d42, // CIFS
  0xfe534d42, // SMB2
  0x517b, // SMB
  0x5346414f, // AFS
  0xc36400, // Ceph
  0x0bd00bd0, // Lustre
]);

/** Whether a file system of this type is on another machine. */
export function isNetworkType(type: number): boolean {
  return NETWORK_TYPES.has(type);
}

/**
 * The socket of the keeper: the one given, else that of `SLOTKEEPER_SOCKET`, else one in `/tmp`. Not in
 * `$XDG_RUNTIME_DIR` or `$TMPDIR`, because cron and a login may have different ones.
 */
export function keeperSocket(given?: string): string {
  if (process.platform === "win32") throw new KeeperError({ reason: "Slots without a service need Linux or macOS" });
  const { SLOTKEEPER_SOCKET: variable } = process.env;
  const chosen = given ?? (variable === "" ? undefined : variable);
  if (chosen !== undefined) return resolve(chosen);
  // On macOS, /tmp is a link.
  return join(realpathSync("/tmp"), `slotkeeper-${process.getuid?.() ?? ""}`, "keeper");
}

/** Creates the folder of the socket if it is missing. Throws a `KeeperError` if FOLDER1 or FOLDER2 does not hold. */
export function checkFolder(socket: string): void {
  const folder = dirname(socket);
  if (Buffer.byteLength(socket) + LONGEST_SUFFIX > LONGEST_PATH) {
    throw new KeeperError({
      reason: `The path of the socket is too long: ${socket}. Choose a shorter one with --socket`,
    });
  }
  const problem = folderProblem(folder, created(folder));
  if (problem !== undefined) {
    throw new KeeperError({ reason: `Cannot use the folder ${folder}: ${problem}. Choose another with --socket` });
  }
}

function created(folder: string): Stats {
  try {
    return lstatSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw unusable(folder, error);
  }
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another command may have created it at the same moment.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(folder, error);
  }
  return lstatSync(folder);
}

function unusable(folder: string, error: unknown): KeeperError {
  return new KeeperError({ reason: `Cannot use the folder ${folder}: ${(error as Error).message}` }, error);
}

function folderProblem(folder: string, stats: Stats): string | undefined {
  if (stats.isSymbolicLink() || realpathSync(folder) !== folder) return "a part of its path is a link";
  if (!stats.isDirectory()) return "it is not a folder";
  if (stats.uid !== process.getuid?.()) return `it belongs to the user with the number ${stats.uid}`;
  if ((stats.mode & 0o077) !== 0) return "other users have access to it (its mode must be 700)";
  return isNetworkType(statfsSync(folder).type) ? "it is on a network file system" : undefined;
}
