import {
  ACTION_OPTIONS,
  command,
  flag,
  LOCAL_OPTIONS,
  NEW_OPTION,
  OPERATOR_OPTIONS,
  valued,
} from "./shared-options.ts";

/** The commands for the person on call. */

const HOST = { name: "HOST" } as const;
const ACTION_EXITS = ["ok", "failed", "usage", "unreachable", "refused"] as const;
const AUDITED = "The service writes the action to its audit log.";

export const STATUS = command({
  name: "status",
  does: "shows hosts with their slots and queues",
  usage: ["[--host NAME] [--url URL] [--json]", "--local [--socket PATH] [--json]"],
  options: {
    host: valued("NAME", "only this host"),
    ...LOCAL_OPTIONS,
    ...OPERATOR_OPTIONS,
    json: flag("print the whole state as JSON"),
  },
  examples: ["slotkeeper status", "slotkeeper status --local", "slotkeeper status --host api.example.com --json"],
  exits: ["ok", "usage", "unreachable", "refused", "keeper"],
});

export const TOP = command({
  name: "top",
  does: "shows hosts, slots, queues and waits of a running service, live",
  usage: ["[--url URL] [--interval SECONDS] [--json]", "--local [--dashboard] [--socket PATH]"],
  options: {
    ...OPERATOR_OPTIONS,
    ...LOCAL_OPTIONS,
    dashboard: flag("with --local: open an address for a browser, and show it with its key"),
    interval: valued("S", "seconds between two readings; default 1"),
    json: flag("print the state once, as JSON"),
  },
  notes: `Keys
  ↑ ↓ PgUp PgDn   choose a host          Enter   open it: slots, holders, queue, why each waits
  s or 1 to 6     sort by another column  r       reverse
  /               search                  Esc     back
  q               quit

Without a terminal it prints the table once, without colours, and exits.`,
  examples: [
    "slotkeeper top",
    "slotkeeper top --url https://slots.internal:8080",
    "slotkeeper top | head -20",
    "slotkeeper top --json",
    "slotkeeper top --local",
  ],
  exits: ["ok", "usage", "unreachable", "refused"],
});

export const WHO = command({
  name: "who",
  does: "shows who holds the slots of a host, who waits, and why the first one waits",
  usage: ["HOST [--url URL] [--json]"],
  arguments: [HOST],
  options: {
    "by-key": ACTION_OPTIONS["by-key"],
    ...OPERATOR_OPTIONS,
    json: flag("print the state of the host as JSON"),
  },
  examples: ["slotkeeper who api.example.com", "slotkeeper who api.example.com --json | jq '.slots[].bucket'"],
  exits: ACTION_EXITS,
});

export const LIMIT = command({
  name: "limit",
  does: "changes the limits of a host in the whole fleet, at once",
  usage: ["HOST [--slots N] [--per-bucket N] [--reset] [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: {
    slots: valued("N", "how many slots the host has (maxSlotPerHost)"),
    "per-bucket": valued("N", "how many slots one bucket may have (maxSlotPerIp); 0: no limit"),
    reset: flag("return every limit that no flag names to its configured value"),
    ...NEW_OPTION,
    ...ACTION_OPTIONS,
  },
  notes: `The store keeps the limits: they survive restarts, and override the configuration until --reset. A lower limit takes no slot
away. ${AUDITED}`,
  examples: [
    "slotkeeper limit api.example.com --slots 20",
    "slotkeeper limit api.example.com --reset",
    "slotkeeper limit api.example.com --slots 20 --per-bucket 2 --yes --json",
  ],
  exits: ACTION_EXITS,
});

export const REVOKE = command({
  name: "revoke",
  does: "takes a slot away from its holder",
  usage: ["HOST FENCE [--yes] [--url URL] [--json]"],
  arguments: [HOST, { name: "FENCE" }],
  options: { ...ACTION_OPTIONS },
  notes: `\`slotkeeper who HOST\` shows the fence of each slot. The next waiter gets the slot at once. The holder is not notified: its
next renewal fails, and until then it works without a slot. ${AUDITED}`,
  examples: ["slotkeeper who api.example.com", "slotkeeper revoke api.example.com 1763449723000001"],
  exits: ACTION_EXITS,
});

export const PAUSE = command({
  name: "pause",
  does: "grants nothing new at a host; holders keep their slots",
  usage: ["HOST [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: { ...NEW_OPTION, ...ACTION_OPTIONS },
  notes: `Sessions wait, and time out as usual. The store keeps the pause: it survives restarts, until \`slotkeeper resume HOST\`.
${AUDITED}`,
  examples: ["slotkeeper pause api.example.com", "slotkeeper pause api.example.com --yes --json"],
  exits: ACTION_EXITS,
});

export const RESUME = command({
  name: "resume",
  does: "lets a paused host go on",
  usage: ["HOST [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: { ...NEW_OPTION, ...ACTION_OPTIONS },
  notes: `The waiters get the free slots at once. ${AUDITED}`,
  examples: ["slotkeeper resume api.example.com"],
  exits: ACTION_EXITS,
});

export const BREAKER = command({
  name: "breaker",
  does: "opens or closes the circuit breaker of a host",
  usage: ["HOST open|close [--yes] [--url URL] [--json]"],
  arguments: [HOST, { name: "STATE", words: ["open", "close"] }],
  options: { ...NEW_OPTION, ...ACTION_OPTIONS },
  notes: `open   ends new and waiting sessions as throttled for breaker.openSeconds; then single requests test the host
close  lets all requests pass, and forgets the errors counted so far
Slots that are held stay held. ${AUDITED}`,
  examples: ["slotkeeper breaker api.example.com open", "slotkeeper breaker api.example.com close --yes"],
  exits: ACTION_EXITS,
});
