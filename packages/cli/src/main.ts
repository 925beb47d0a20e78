import { readFileSync } from "node:fs";
import { EXIT, exitHelp } from "./exit-codes.ts";

/** All packages share one version. Read here, because importing the server takes half a second. */
const { version: VERSION } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const HELP = `slotkeeper ${VERSION}: limits how many things run at a time, across processes and machines.

Usage
  slotkeeper serve [options]     serve slots over HTTP
  slotkeeper migrate [options]   bring the schema of the database to this version
  slotkeeper doctor [options]    find out why a service does not work, and how to fix it
  slotkeeper acquire [options]   wait for a slot and print its token
  slotkeeper release TOKEN       give a slot back
  slotkeeper status [options]    show hosts with their slots and queues
  slotkeeper exec [options] -- command   hold a slot while a command runs
  slotkeeper top [options]       show hosts, slots, queues and waits of a running service, live
  slotkeeper --help | --version

Examples
  slotkeeper serve                           with defaults: state in memory, 127.0.0.1:8080
  slotkeeper serve -c config.json            with a configuration file
  slotkeeper serve --listen :9000 --json     on another port, with logs as JSON
  slotkeeper serve --help                    all options
  slotkeeper migrate -c config.json          before the first start on PostgreSQL, and after each update
  slotkeeper doctor -c config.json           when something is wrong, and before a first start
  slotkeeper status                          show the service at http://127.0.0.1:8080
  slotkeeper exec --url http://127.0.0.1:8080 --host jobs --max 2 -- ./backup.sh

${exitHelp()}`;

type Command = (args: readonly string[]) => Promise<number>;

/** Each command loads only what it needs, so that a script that calls `release` does not load the server. */
const COMMANDS: { readonly [name: string]: () => Promise<Command> } = {
  serve: async () => (await import("./serve.ts")).serve,
  migrate: async () => (await import("./migrate.ts")).migrateCommand,
  doctor: async () => (await import("./doctor.ts")).doctorCommand,
  acquire: async () => (await import("./acquire.ts")).acquireCommand,
  release: async () => (await import("./release.ts")).releaseCommand,
  status: async () => (await import("./status.ts")).statusCommand,
  exec: async () => (await import("./exec.ts")).execCommand,
  keeper: async () => (await import("./local/keeper.ts")).keeperCommand,
  top: async () => (await import("./top/top.ts")).top,
};

/** Runs one command line, and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  // If the reader stops early, like `head`, that is not a failure.
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
    process.exit(code === "EPIPE" ? EXIT.ok : EXIT.failed),
  );
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") {
    process.stdout.write(`${VERSION}\n`);
    return EXIT.ok;
  }
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(HELP);
    return EXIT.ok;
  }
  const load = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load !== undefined) return (await load())(rest);
  if (name === undefined) process.stderr.write(`Expected a command.\n\n${HELP}`);
  else process.stderr.write(await unknownCommand(name));
  return EXIT.usage;
}

async function unknownCommand(name: string): Promise<string> {
  const { nearestFirst } = await import("@slotkeeper/server/words");
  return `Unknown command \`${name}\`. There are: ${nearestFirst(name, Object.keys(COMMANDS)).join(", ")}.\n`;
}
