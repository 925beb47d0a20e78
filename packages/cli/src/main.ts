import { VERSION } from "@slotkeeper/server";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { migrateCommand } from "./migrate.ts";
import { serve } from "./serve.ts";
import { top } from "./top/top.ts";

const HELP = `slotkeeper ${VERSION}: decides who may run now.

Usage
  slotkeeper serve [options]     serve slots over HTTP
  slotkeeper migrate [options]   bring the database's schema to this version
  slotkeeper top [options]       show hosts, slots, queues and waits of a running service, live
  slotkeeper --help | --version

Examples
  slotkeeper serve                           embedded default: memory, 127.0.0.1:8080
  slotkeeper serve -c config.json            with a configuration
  slotkeeper serve --listen :9000 --json     for machines
  slotkeeper serve --help                    all options
  slotkeeper migrate -c config.json          before the first start on PostgreSQL, and after each update

Exit codes
  0 done   1 failed   2 wrong usage   3 bad configuration   4 cannot listen   5 cannot use the database
`;

const COMMANDS: { readonly [name: string]: (args: readonly string[]) => Promise<ExitCode> } = {
  serve,
  migrate: migrateCommand,
  top,
};

/** Runs one command line and says with which code to exit. */
export async function main(args: readonly string[]): Promise<ExitCode> {
  // A reader that has seen enough, like `head`, is no failure.
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
  const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command !== undefined) return command(rest);
  process.stderr.write(`${name === undefined ? "Which command?" : `Unknown command \`${name}\`.`}\n\n${HELP}`);
  return EXIT.usage;
}
