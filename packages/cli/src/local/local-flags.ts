/** The flags of commands that show the slots of this machine instead of those of a service. */
export const LOCAL_OPTIONS = { local: { type: "boolean" }, socket: { type: "string" } } as const;

export const LOCAL_HELP = `      --local         the slots of this machine, which need no service
      --socket PATH   with --local: the socket of the keeper; default: SLOTKEEPER_SOCKET, else one in /tmp`;
