import { VERSION } from "@slotkeeper/server";
import { acquireCommand } from "./acquire.ts";
import { doctorCommand } from "./doctor.ts";
import { execCommand } from "./exec.ts";
import { EXIT, exitHelp } from "./exit-codes.ts";
import { migrateCommand } from "./migrate.ts";
import { releaseCommand } from "./release.ts";
import { serve } from "./serve.ts";
import { statusCommand } from "./status.ts";
import { top } from "./top/top.ts";

const HELP = `slotkeeper ${VERSION}: decides who may run now.

Usage
  slotkeeper serve [options]     serve slots over HTTP
  slotkeeper migrate [options]   bring the database's schema to this version
  slotkeeper doctor [options]    find what keeps a service from working, and how to fix it
  slotkeeper acquire [options]   wait for a slot and print its token
  slotkeeper release TOKEN       give a slot back
  slotkeeper status [options]    show hosts with their slots and queues
  slotkeeper exec [options] -- command   run a command while it holds a slot
  slotkeeper top [options]       show hosts, slots, queues and waits of a running service, live
  slotkeeper --help | --version

Examples
  slotkeeper serve                           embedded default: memory, 127.0.0.1:8080
  slotkeeper serve -c config.json            with a configuration
  slotkeeper serve --listen :9000 --json     for machines
  slotkeeper serve --help                    all options
  slotkeeper migrate -c config.json          before the first start on PostgreSQL, and after each update
  slotkeeper doctor -c config.json           when something is wrong, and before a first start
  slotkeeper status                          of the service at http://127.0.0.1:8080
  slotkeeper exec --url http://127.0.0.1:8080 --host jobs --max 2 -- ./backup.sh

${exitHelp()}`;

const COMMANDS: { readonly [name: string]: (args: readonly string[]) => Promise<number> } = {
  serve,
  migrate: migrateCommand,
  doctor: doctorCommand,
  acquire: acquireCommand,
  release: releaseCommand,
  status: statusCommand,
  exec: execCommand,
  top,
};

/** Runs one command line and says with which code to exit. */
export async function main(args: readonly string[]): Promise<number> {
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
  if (name === undefined) process.stderr.write(`Which command?\n\n${HELP}`);
  else process.stderr.write(`Unknown command \`${name}\`. There are: ${Object.keys(COMMANDS).join(", ")}.\n`);
  return EXIT.usage;
}
