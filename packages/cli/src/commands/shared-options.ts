/** What the tables of commands are made of, and the flags that several commands have. */
import type { Command } from "./command.ts";

/** A command. All have the flag `--help`. */
export function command<const C extends Command>(given: C): C {
  return { ...given, options: { ...given.options, help: { ...flag("show this text"), short: "h" } } };
}

/** A flag without a value. */
export function flag(about: string) {
  return { type: "boolean", about } as const;
}

/** A flag with a value, and what the value is called. */
export function valued(value: string, about: string) {
  return { type: "string", value, about } as const;
}

/** The same for a flag that may be given several times. */
export function repeated(value: string, about: string) {
  return { ...valued(value, about), multiple: true } as const;
}

export function configOption(about: string) {
  return { ...valued("FILE", about), short: "c" } as const;
}

export const DEFAULT_URL = "http://127.0.0.1:8080";
export const DEFAULT_HEADER = "X-FQ-Auth";

const URL_OPTION = {
  url: valued("URL", `address of the service; default: SLOTKEEPER_URL, else ${DEFAULT_URL}`),
} as const;

/**
 * The address and the key for commands of callers. `--token` is always the key of callers, and `--internal-token` always
 * the token of operators.
 */
export const SERVICE_OPTIONS = {
  ...URL_OPTION,
  token: valued(
    "KEY",
    "the shared key of callers; better set SLOTKEEPER_TOKEN, which other users cannot see in the process list",
  ),
  header: valued("NAME", `header of the shared key; default ${DEFAULT_HEADER}`),
} as const;

/** The same for commands of operators. */
export const OPERATOR_OPTIONS = {
  ...URL_OPTION,
  "internal-token": valued(
    "KEY",
    "internalApiToken of the service; better set SLOTKEEPER_INTERNAL_TOKEN, which other users cannot see in the process list. A service without such a token answers only callers on its own machine",
  ),
} as const;

/** The host, the bucket, the number of slots and the longest wait. */
export const WAIT_OPTIONS = {
  host: valued("NAME", "the upstream host; with --max: the name of a semaphore"),
  bucket: valued("NAME", "group of clients: all groups get equal shares of slot time; not with --max"),
  max: valued(
    "N",
    "use a semaphore with N slots, independent of the configuration; all its users must give the same N",
  ),
  width: valued("N", "number of slots that are needed at once; default 1"),
  cost: repeated(
    "NAME=N",
    "what it costs of a budget of the host, for example tokens=3000; may be repeated; not with --max",
  ),
  key: repeated("NAME=VALUE", "value for a key of the host, for example tenant=acme; may be repeated; not with --max"),
  class: valued("NAME", "class of the request at the host, for example chat; default: default; not with --max"),
  timeout: valued("S", "longest wait in seconds; default 20, with --max no limit"),
  quiet: flag("do not show on standard error what it waits for"),
  "internal-token": valued(
    "KEY",
    "internalApiToken of the service, or SLOTKEEPER_INTERNAL_TOKEN: to show who holds the slots meanwhile",
  ),
} as const;

/** For `exec`: a semaphore by its name, of this machine or of a service. */
export const NAME_OPTIONS = {
  name: valued("NAME", "what is shared, for example gpu or build"),
  slots: valued("N", "how many may run at a time; default: as the first user of the name has set it, else 1"),
  as: valued("GROUP", "who shares: all groups get equal shares of slot time; default: the repository, else the user"),
  socket: valued("PATH", "the socket of the keeper of this machine; default: SLOTKEEPER_SOCKET, else one in /tmp"),
  close: flag("end the slot with the command, although processes that it started still run"),
  nested: flag("under a command that holds a slot of this name: run under that slot if it is still held"),
} as const;

/** For commands that show the slots of this machine instead of those of a service. */
export const LOCAL_OPTIONS = {
  local: flag("the slots of this machine, which need no service"),
  socket: valued("PATH", "with --local: the socket of the keeper; default: SLOTKEEPER_SOCKET, else one in /tmp"),
} as const;

export const JSON_OPTION = { json: flag("print JSON") } as const;

/** For commands that change something at a host. */
export const ACTION_OPTIONS = {
  yes: flag("do not ask; needed where no terminal can answer"),
  "by-key": flag("HOST is the key of the host, as status --json shows it"),
  ...OPERATOR_OPTIONS,
  ...JSON_OPTION,
} as const;

/** For those of them that a host need not have been used for. */
export const NEW_OPTION = {
  new: flag("accept a host that has not been used yet"),
} as const;
