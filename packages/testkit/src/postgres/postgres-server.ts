import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const KEEPER = fileURLToPath(new URL("../../bin/postgres-keeper.mjs", import.meta.url));

export interface PostgresServer {
  /** Of its superuser, to the database "postgres". */
  readonly dsn: string;
  stop(): Promise<void>;
}

/** A real PostgreSQL server of our own, on a free port of the loopback; it ends with this process at the latest. */
export async function startPostgres(): Promise<PostgresServer> {
  const keeper = spawn(process.execPath, [KEEPER], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const hasEnded = new Promise<void>((resolve) => void keeper.once("close", () => resolve()));
  const firstLine = new Promise<string>((resolve) => void createInterface(keeper.stdout).once("line", resolve));
  const ready = await Promise.race([firstLine, hasEnded]);
  if (ready === undefined) throw new Error("PostgreSQL did not start; its messages are above");
  const { dsn } = JSON.parse(ready) as { dsn: string };
  const stop = async () => {
    keeper.stdin.end();
    await hasEnded;
  };
  return { dsn, stop };
}
