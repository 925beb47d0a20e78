import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import {
  checkFolder,
  claimGeneration,
  FILE_SUFFIX,
  isListening,
  isOwnFile,
  keeperSocket,
  PROTOCOL,
} from "@slotkeeper/client/node/parts";
import { Keeper } from "@slotkeeper/server/keeper";
import { systemWords } from "@slotkeeper/server/words";
import { KEEPER } from "../commands/serving.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { running } from "../read-flags.ts";

const IDLE_MS = 10_000;

export const keeperCommand = running(KEEPER, async (flags) => {
  return keep(keeperSocket(flags.socket), { idleMs: IDLE_MS, logFile: flags.log, onReady: () => {} });
});

interface KeepOptions {
  /** Undefined: it stays. */
  readonly idleMs: number | undefined;
  /** Removed at the end. */
  readonly logFile: string | undefined;
  readonly onReady: (path: string) => void;
}

/** Runs a keeper until it is idle, or until a signal ends it. The next keeper takes over the slots that are held then. */
export async function keep(socket: string, { idleMs, logFile, onReady }: KeepOptions): Promise<ExitCode> {
  checkFolder(socket);
  const own = `${socket}.k${randomBytes(3).toString("hex")}`;
  let claimed: string | undefined;
  const end = (code: ExitCode = EXIT.ok) => {
    remove(claimed, own, logFile);
    process.exit(code);
  };
  const claim = async () => {
    claimed = await claimGeneration(socket, own);
    rmSync(`${socket}${FILE_SUFFIX.starting}`, { force: true });
    return claimed !== undefined;
  };
  // A full disk must not end the keeper: its log is lost then, and grants wait.
  process.stderr.on("error", () => {});
  process.on("SIGXFSZ", () => {});
  const keeper = new Keeper({
    path: own,
    leasePrefix: `${socket}${FILE_SUFFIX.lease}`,
    isOwnFile: (name) => isOwnFile(socket, name),
    protocol: PROTOCOL,
    logFile,
    idleMs,
    claim,
    isListening,
    log,
    end,
  });
  const isKeeper = await keeper.started().catch((error: unknown) => {
    // The command that started this keeper reads the log, and removes it.
    process.stderr.write(`Cannot use the folder ${dirname(socket)}: ${systemWords(error)}.\n`);
    remove(claimed, own);
    return process.exit(EXIT.keeper);
  });
  if (!isKeeper) {
    if (idleMs === undefined) process.stderr.write(`Another keeper serves ${socket}.\n`);
    end(idleMs === undefined ? EXIT.listen : EXIT.ok);
  }
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => end());
  onReady(claimed ?? "");
  return new Promise(() => {});
}

function log(line: string): void {
  process.stderr.write(`${new Date().toISOString()} ${line}\n`);
}

function remove(...files: (string | undefined)[]): void {
  for (const file of files) if (file !== undefined) rmSync(file, { force: true });
}
