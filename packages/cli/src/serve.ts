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
import { SERVE } from "./commands/serving.ts";
import { sourcesOf } from "./config-sources.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { running, wrongUsage } from "./read-flags.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

export const serve = running(SERVE, async (flags) => {
  if (flags.socket !== undefined) return serveSocket(flags.socket, flags);
  const sources = sourcesOf(flags);
  try {
    if (flags["print-config"] === true) return await print(sources, flags.json === true);
    return await start(sources, flags.json === true || process.env["NODE_ENV"] === "production");
  } catch (error) {
    return failed(error, flags.config);
  }
});

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

/** Prints the dashboard first, then the address, the store, and a first request that works. */
function announce(service: Service, isJson: boolean): string {
  const { url, address, storeDescription: store, config } = service;
  const dashboard = `${url}/`;
  const tryIt = firstRequest(service);
  if (isJson)
    return `${JSON.stringify({ event: "listening", version: VERSION, url, dashboard, address, store, config: config.version, tryIt })}\n`;
  return `slotkeeper ${VERSION}
  dashboard  ${dashboard}
  listening  ${url}${reachOf(service)}
  store      ${store}
  config     ${config.version}
  try it     ${tryIt}
`;
}

/**
 * Says which machines can reach the service if the address does not show it, and how to change that if it is the
 * default.
 */
function reachOf({ address, url, config }: Service): string {
  const { port } = new URL(url);
  if (address === "::" || address === "0.0.0.0")
    return `\n             and every other address of this machine, port ${port}`;
  if (config.origins.get("listen") !== "default") return "";
  return "\n             only from this machine; to open it: set auth.enabled and auth.token, or --listen :8080";
}

/** Never prints a key: if one is needed, the line takes it from the environment. */
function firstRequest({ url, config }: Service): string {
  const { auth } = config.settings;
  const key = auth === undefined ? "" : ` -H "${auth.header}: $SLOTKEEPER_AUTH__TOKEN"`;
  return `curl -sS ${url}/api/v0/fairqueue/acquire${key} -d '{"hostname":"example.com","bucket":"me","waitMs":1000}'`;
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
  const { code, message } = failureOf(error, config);
  process.stderr.write(`${message}\n`);
  return code;
}

function failureOf(error: unknown, config: string | undefined): { readonly code: ExitCode; readonly message: string } {
  const { message } = error as Error;
  if (error instanceof ConfigError) return { code: EXIT.config, message };
  if (error instanceof SchemaError) return { code: EXIT.database, message: withConfig(error, config) };
  if (error instanceof DatabaseError || error instanceof MigrateError) return { code: EXIT.database, message };
  const { code = "", address, hostname, port = 0 } = error as Partial<ListenError>;
  if (code === "EADDRINUSE") {
    const advice = `Stop it, or choose another port with --listen, for example --listen 127.0.0.1:${port + 1}.`;
    const why = `Port ${port} on ${address} is in use: another program, perhaps another slotkeeper, listens there.`;
    return { code: EXIT.listen, message: `${why} ${advice}` };
  }
  if (NO_ADDRESS.has(code)) {
    const why = `Cannot listen on ${address ?? hostname ?? "the address given"}: ${systemWords(error)}.`;
    return { code: EXIT.listen, message: `${why} Choose another address with --listen.` };
  }
  return { code: EXIT.failed, message: `slotkeeper failed: ${message}` };
}

/** The message of a schema that is behind ends with the command to run: completed by the configuration of this one. */
function withConfig({ code, message }: SchemaError, config: string | undefined): string {
  const isBehind = code === "SCHEMA_MISSING" || code === "SCHEMA_OLD";
  return isBehind && config !== undefined ? `${message} -c ${config}` : message;
}
