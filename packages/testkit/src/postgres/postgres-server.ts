import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const KEEPER = fileURLToPath(new URL("../../bin/postgres-keeper.mjs", import.meta.url));
const PRIVATE_MOUNTS = ["--mount", "--propagation", "private", "--"] as const;

export interface PostgresOptions {
  /**
   * Syncs every commit, as users run it: for benchmarks, and for tests that crash the server. Default: false, because
   * the database of a test need not survive.
   */
  readonly isDurable?: boolean;
  /** Settings in addition to those of the tests; they override them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Puts the data on a file system of this size, so that it can be filled. See `canLimitData`. */
  readonly dataLimitMb?: number;
}

/** The commands of `server-control.mjs`. */
export type PostgresCommand = "stop fast" | "stop immediate" | "start" | "pause" | "resume" | "fill" | "free";

export interface PostgresServer {
  /** The address for its superuser, of the database "postgres". */
  readonly dsn: string;
  /** Rejects if the command failed. */
  command(command: PostgresCommand): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real PostgreSQL server on a free port of the loopback. It ends with this process at the latest. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const program = [process.execPath, KEEPER, JSON.stringify(options)];
  const [file = "", ...args] = options.dataLimitMb === undefined ? program : ["unshare", ...PRIVATE_MOUNTS, ...program];
  const keeper = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const hasEnded = new Promise<undefined>((resolve) => {
    keeper.once("close", () => resolve(undefined)).once("error", () => resolve(undefined));
  });
  keeper.stdin.on("error", () => {});
  const lines = createInterface(keeper.stdout)[Symbol.asyncIterator]();
  const nextLine = async () => (await Promise.race([lines.next(), hasEnded]))?.value as string | undefined;
  const ready = await nextLine();
  if (ready === undefined) throw new Error("PostgreSQL did not start; its messages are above");
  let last: Promise<unknown> = Promise.resolve();
  const command = (name: PostgresCommand): Promise<void> => {
    const done = last.then(async () => {
      keeper.stdin.write(`${name}\n`);
      const { error } = JSON.parse((await nextLine()) ?? '{"error":"the server has ended"}') as { error?: string };
      if (error !== undefined) throw new Error(`PostgreSQL, ${name}: ${error}`);
    });
    last = done.catch(() => {});
    return done;
  };
  const stop = async () => {
    keeper.stdin.end();
    await hasEnded;
  };
  return { dsn: (JSON.parse(ready) as { dsn: string }).dsn, command, stop };
}

/** Whether this machine lets us mount a file system: that needs Linux and root. */
export function canLimitData(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-mount-"));
  const mount = ["mount", "-t", "tmpfs", "tmpfs", folder];
  const { status } = spawnSync("unshare", [...PRIVATE_MOUNTS, ...mount], { stdio: "ignore" });
  rmdirSync(folder);
  return status === 0;
}
