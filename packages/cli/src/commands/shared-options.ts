/** The flags that several commands have. */

export const DEFAULT_URL = "http://127.0.0.1:8080";
export const DEFAULT_HEADER = "X-FQ-Auth";

export const HELP_OPTION = { help: { type: "boolean", short: "h", about: "show this text" } } as const;

const URL_OPTION = {
  url: {
    type: "string",
    value: "URL",
    about: `address of the service; default: SLOTKEEPER_URL, else ${DEFAULT_URL}`,
  },
} as const;

/**
 * The address and the key for commands of callers. `--token` is always the key of callers, and `--internal-token` always
 * the token of operators.
 */
export const SERVICE_OPTIONS = {
  ...URL_OPTION,
  token: {
    type: "string",
    value: "KEY",
    about: "the shared key of callers; better set SLOTKEEPER_TOKEN, which other users cannot see in the process list",
  },
  header: { type: "string", value: "NAME", about: `header of the shared key; default ${DEFAULT_HEADER}` },
} as const;

/** The same for commands of operators. */
export const OPERATOR_OPTIONS = {
  ...URL_OPTION,
  "internal-token": {
    type: "string",
    value: "KEY",
    about:
      "internalApiToken of the service; better set SLOTKEEPER_INTERNAL_TOKEN, which other users cannot see in the process list. A service without such a token answers only callers on its own machine",
  },
} as const;

/** The host, the bucket, the number of slots and the longest wait. */
export const WAIT_OPTIONS = {
  host: { type: "string", value: "NAME", about: "the upstream host; with --max: the name of a semaphore" },
  bucket: {
    type: "string",
    value: "NAME",
    about: "group of clients: all groups get equal shares of slot time; not with --max",
  },
  max: {
    type: "string",
    value: "N",
    about: "use a semaphore with N slots, independent of the configuration; all its users must give the same N",
  },
  width: { type: "string", value: "N", about: "number of slots that are needed at once; default 1" },
  cost: {
    type: "string",
    multiple: true,
    value: "NAME=N",
    about: "what it costs of a budget of the host, for example tokens=3000; may be repeated; not with --max",
  },
  key: {
    type: "string",
    multiple: true,
    value: "NAME=VALUE",
    about: "value for a key of the host, for example tenant=acme; may be repeated; not with --max",
  },
  class: {
    type: "string",
    value: "NAME",
    about: "class of the request at the host, for example chat; default: default; not with --max",
  },
  timeout: { type: "string", value: "S", about: "longest wait in seconds; default 20, with --max no limit" },
  quiet: { type: "boolean", about: "do not show on standard error what it waits for" },
  "internal-token": {
    type: "string",
    value: "KEY",
    about: "internalApiToken of the service, or SLOTKEEPER_INTERNAL_TOKEN: to show who holds the slots meanwhile",
  },
} as const;

/** For `exec`: a semaphore by its name, of this machine or of a service. */
export const NAME_OPTIONS = {
  name: { type: "string", value: "NAME", about: "what is shared, for example gpu or build" },
  slots: {
    type: "string",
    value: "N",
    about: "how many may run at a time; default: as the first user of the name has set it, else 1",
  },
  as: {
    type: "string",
    value: "GROUP",
    about: "who shares: all groups get equal shares of slot time; default: the repository, else the user",
  },
  socket: {
    type: "string",
    value: "PATH",
    about: "the socket of the keeper of this machine; default: SLOTKEEPER_SOCKET, else one in /tmp",
  },
  close: { type: "boolean", about: "end the slot with the command, although processes that it started still run" },
  nested: { type: "boolean", about: "under a command that holds a slot of this name: run under that slot" },
} as const;

/** For commands that show the slots of this machine instead of those of a service. */
export const LOCAL_OPTIONS = {
  local: { type: "boolean", about: "the slots of this machine, which need no service" },
  socket: {
    type: "string",
    value: "PATH",
    about: "with --local: the socket of the keeper; default: SLOTKEEPER_SOCKET, else one in /tmp",
  },
} as const;

/** For commands that change something at a host. */
export const ACTION_OPTIONS = {
  yes: { type: "boolean", about: "do not ask; needed where no terminal can answer" },
  "by-key": { type: "boolean", about: "HOST is the key of the host, as status --json shows it" },
} as const;

/** For those of them that a host need not have been used for. */
export const NEW_OPTION = {
  new: { type: "boolean", about: "accept a host that has not been used yet" },
} as const;

export const JSON_OPTION = { json: { type: "boolean", about: "print JSON" } } as const;
