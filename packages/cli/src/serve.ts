import { keeperSocket } from "@slotkeeper/client/node/parts";
import {
  ConfigError,
  type ConfigSources,
  DatabaseError,
  effectiveConfig,
  formatPrinted,
  LogSink,
  MigrateError,
  printedKeys,
  SchemaError,
  Service,
  sentenceOf,
  VERSION,
} from "@slotkeeper/server";
import { systemWords } from "@slotkeeper/server/words";
import { announce } from "./announce.ts";
import { SERVE } from "./commands/serving.ts";
import { sourcesOf } from "./config-sources.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { readFlags, wrongUsage } from "./read-flags.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

export async function serve(args: readonly string[]): Promise<ExitCode> {
  const flags = await readFlags(args, SERVE);
  if (typeof flags === "number") return flags;
  if (flags.socket !== undefined) return serveSocket(flags.socket, flags);
  const sources = sourcesOf(flags);
  try {
    if (flags["print-config"] === true) return await print(sources, flags.json === true);
    return await start(sources, flags.json === true || process.env["NODE_ENV"] === "production");
  } catch (error) {
    return failed(error, flags.config);
  }
}

/** A keeper has no configuration. */
async function serveSocket(socket: string, flags: { readonly [flag: string]: unknown }): Promise<ExitCode> {
  const others = ["config", "data", "listen", "wait-for-store", "print-config"].filter((flag) => flag in flags);
  const problems = others.map((flag) => `--socket and --${flag} cannot be combined.`);
  if (problems.length > 0) return wrongUsage(problems.join("\n"), SERVE);
  const { keep } = await import("./local/keeper.ts");
  try {
    return await keep(keeperSocket(socket), { idleMs: undefined, logFile: undefined, onReady: announceKeeper });
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return EXIT.keeper;
  }
}

function announceKeeper(path: string): void {
  process.stdout.write(`slotkeeper ${VERSION}\n  keeper     ${path}\n`);
}

async function print(sources: ConfigSources, isJson: boolean): Promise<ExitCode> {
  const config = await effectiveConfig(sources, (line) => process.stderr.write(line));
  const keys = printedKeys(config);
  for (const warning of config.warnings) process.stderr.write(`Warning: ${sentenceOf(warning)}\n`);
  process.stdout.write(isJson ? `${JSON.stringify(keys)}\n` : `${formatPrinted(keys)}\n`);
  return EXIT.ok;
}

async function start(sources: ConfigSources, isJson: boolean): Promise<ExitCode> {
  const isTerminal = process.stderr.isTTY;
  const sink = new LogSink(process.stderr);
  const service = await Service.start({
    ...sources,
    log: {
      write: sink.write,
      lost: () => sink.lost,
      isJson: isJson || !isTerminal,
      hasColours: isTerminal && process.env["NO_COLOR"] === undefined,
    },
  });
  // The service continues even if no process reads its banner.
  process.stdout.removeAllListeners("error").on("error", () => {});
  // Before the banner: a program that reads it may send a signal at once.
  const stopped = runUntilStopped(service);
  process.stdout.write(announce(service, isJson));
  return stopped;
}

/** Error codes of the system for an address that this machine does not have, or that this user may not use. */
const NO_ADDRESS: ReadonlySet<string> = new Set(["EACCES", "EADDRNOTAVAIL", "EAI_AGAIN", "EINVAL", "ENOTFOUND"]);

interface ListenError {
  readonly code: string;
  readonly address: string;
  readonly hostname: string;
  readonly port: number;
}

function failed(error: unknown, config: string | undefined): ExitCode {
  if (error instanceof ConfigError) {
    process.stderr.write(`${error.message}\n`);
    return EXIT.config;
  }
  if (error instanceof SchemaError) {
    process.stderr.write(`${withConfig(error, config)}\n`);
    return EXIT.database;
  }
  if (error instanceof DatabaseError || error instanceof MigrateError) {
    process.stderr.write(`${error.message}\n`);
    return EXIT.database;
  }
  const { code = "", address, hostname, port = 0 } = error as Partial<ListenError>;
  if (code === "EADDRINUSE") {
    process.stderr.write(
      `Port ${port} on ${address} is in use: another program, perhaps another slotkeeper, listens there. Stop it, or choose another port with --listen, for example --listen 127.0.0.1:${port + 1}.\n`,
    );
    return EXIT.listen;
  }
  if (NO_ADDRESS.has(code)) {
    const name = address ?? hostname ?? "the address given";
    process.stderr.write(`Cannot listen on ${name}: ${systemWords(error)}. Choose another address with --listen.\n`);
    return EXIT.listen;
  }
  process.stderr.write(`slotkeeper failed: ${(error as Error).message}\n`);
  return EXIT.failed;
}

/** The message of a schema that is behind ends with the command to run: completed by the configuration of this one. */
function withConfig({ code, message }: SchemaError, config: string | undefined): string {
  const isBehind = code === "SCHEMA_MISSING" || code === "SCHEMA_OLD";
  return isBehind && config !== undefined ? `${message} -c ${config}` : message;
}
