/** The general help. Loaded only where it is shown: the texts of all commands take longer to load than `exec` itself. */
import { nearestFirst } from "@slotkeeper/server/words";
import { argumentsText } from "./commands/command.ts";
import { COMMANDS, SHOWN } from "./commands/commands.ts";
import { exitHelp } from "./exit-codes.ts";

export function helpText(version: string): string {
  return `slotkeeper ${version}: limits how many things run at a time, across processes and machines.

Usage
${commandLines()}
  slotkeeper --help | --version

Examples
  slotkeeper serve                           with defaults: state in memory, 127.0.0.1:8080
  slotkeeper serve -c config.json            with a configuration file
  slotkeeper serve --listen :9000 --json     on another port, with logs as JSON
  slotkeeper serve --help                    all options
  slotkeeper migrate -c config.json          before the first start on PostgreSQL, and after each update
  slotkeeper doctor -c config.json           when something is wrong, and before a first start
  slotkeeper status                          show the service at http://127.0.0.1:8080
  slotkeeper limit api.example.com --slots 20
  slotkeeper exec --url http://127.0.0.1:8080 --host jobs --max 2 -- ./backup.sh

${exitHelp()}`;
}

export function unknownCommand(name: string): string {
  const names = COMMANDS.map((command) => command.name);
  return `Unknown command \`${name}\`. There are: ${nearestFirst(name, names).join(", ")}.\n`;
}

/** The lines of the general help: how to call each command, and what it does. */
function commandLines(): string {
  const calls = SHOWN.map((command) => {
    const more = command.takesCommand === true ? "[options] -- command" : argumentsText(command) || "[options]";
    return `  slotkeeper ${command.name} ${more}`;
  });
  const width = Math.max(...calls.map(({ length }) => length)) + 2;
  return SHOWN.map(({ does }, at) => `${calls[at]?.padEnd(width)}${does}`).join("\n");
}
