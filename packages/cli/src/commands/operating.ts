import type { Command } from "./command.ts";
import {
  ACTION_OPTIONS,
  HELP_OPTION,
  JSON_OPTION,
  LOCAL_OPTIONS,
  NEW_OPTION,
  OPERATOR_OPTIONS,
} from "./shared-options.ts";

/** The commands for the person on call. */

const HOST = { name: "HOST" } as const;
const ACTION_EXITS = ["ok", "failed", "usage", "unreachable", "refused"] as const;
const AUDITED = "The service writes the action to its audit log.";

export const STATUS = {
  name: "status",
  does: "shows hosts with their slots and queues",
  usage: ["[--host NAME] [--url URL] [--json]", "--local [--socket PATH] [--json]"],
  options: {
    host: { type: "string", value: "NAME", about: "only this host" },
    ...LOCAL_OPTIONS,
    ...OPERATOR_OPTIONS,
    json: { type: "boolean", about: "print the whole state as JSON" },
    ...HELP_OPTION,
  },
  examples: ["slotkeeper status", "slotkeeper status --local", "slotkeeper status --host api.example.com --json"],
  exits: ["ok", "usage", "unreachable", "refused", "keeper"],
} as const satisfies Command;

export const TOP = {
  name: "top",
  does: "shows hosts, slots, queues and waits of a running service, live",
  usage: ["[--url URL] [--interval SECONDS] [--json]", "--local [--dashboard] [--socket PATH]"],
  options: {
    ...OPERATOR_OPTIONS,
    ...LOCAL_OPTIONS,
    dashboard: { type: "boolean", about: "with --local: open an address for a browser, and show it with its key" },
    interval: { type: "string", value: "S", about: "seconds between two readings; default 1" },
    json: { type: "boolean", about: "print the state once, as JSON" },
    ...HELP_OPTION,
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
} as const satisfies Command;

export const WHO = {
  name: "who",
  does: "shows who holds the slots of a host, who waits, and why the first one waits",
  usage: ["HOST [--url URL] [--json]"],
  arguments: [HOST],
  options: {
    "by-key": ACTION_OPTIONS["by-key"],
    ...OPERATOR_OPTIONS,
    json: { type: "boolean", about: "print the state of the host as JSON" },
    ...HELP_OPTION,
  },
  examples: ["slotkeeper who api.example.com", "slotkeeper who api.example.com --json | jq '.slots[].bucket'"],
  exits: ACTION_EXITS,
} as const satisfies Command;

export const LIMIT = {
  name: "limit",
  does: "changes the limits of a host in the whole fleet, at once",
  usage: ["HOST [--slots N] [--per-bucket N] [--reset] [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: {
    slots: { type: "string", value: "N", about: "how many slots the host has (maxSlotPerHost)" },
    "per-bucket": {
      type: "string",
      value: "N",
      about: "how many slots one bucket may have (maxSlotPerIp); 0: no limit",
    },
    reset: { type: "boolean", about: "return every limit that no flag names to its configured value" },
    ...NEW_OPTION,
    ...ACTION_OPTIONS,
    ...OPERATOR_OPTIONS,
    ...JSON_OPTION,
    ...HELP_OPTION,
  },
  notes: `The store keeps the limits: they survive restarts, and override the configuration until --reset. A lower limit takes no slot
away. ${AUDITED}`,
  examples: [
    "slotkeeper limit api.example.com --slots 20",
    "slotkeeper limit api.example.com --reset",
    "slotkeeper limit api.example.com --slots 20 --per-bucket 2 --yes --json",
  ],
  exits: ACTION_EXITS,
} as const satisfies Command;

export const REVOKE = {
  name: "revoke",
  does: "takes a slot away from its holder",
  usage: ["HOST FENCE [--yes] [--url URL] [--json]"],
  arguments: [HOST, { name: "FENCE" }],
  options: { ...ACTION_OPTIONS, ...OPERATOR_OPTIONS, ...JSON_OPTION, ...HELP_OPTION },
  notes: `\`slotkeeper who HOST\` shows the fence of each slot. The next waiter gets the slot at once. The holder is not notified: its
next renewal fails, and until then it works without a slot. ${AUDITED}`,
  examples: ["slotkeeper who api.example.com", "slotkeeper revoke api.example.com 1763449723000001"],
  exits: ACTION_EXITS,
} as const satisfies Command;

const PAUSE_OPTIONS = {
  ...NEW_OPTION,
  ...ACTION_OPTIONS,
  ...OPERATOR_OPTIONS,
  ...JSON_OPTION,
  ...HELP_OPTION,
} as const;

export const PAUSE = {
  name: "pause",
  does: "grants nothing new at a host; holders keep their slots",
  usage: ["HOST [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: PAUSE_OPTIONS,
  notes: `Sessions wait, and time out as usual. The store keeps the pause: it survives restarts, until \`slotkeeper resume HOST\`.
${AUDITED}`,
  examples: ["slotkeeper pause api.example.com", "slotkeeper pause api.example.com --yes --json"],
  exits: ACTION_EXITS,
} as const satisfies Command;

export const RESUME = {
  name: "resume",
  does: "lets a paused host go on",
  usage: ["HOST [--yes] [--url URL] [--json]"],
  arguments: [HOST],
  options: PAUSE_OPTIONS,
  notes: `The waiters get the free slots at once. ${AUDITED}`,
  examples: ["slotkeeper resume api.example.com"],
  exits: ACTION_EXITS,
} as const satisfies Command;

export const BREAKER = {
  name: "breaker",
  does: "opens or closes the circuit breaker of a host",
  usage: ["HOST open|close [--yes] [--url URL] [--json]"],
  arguments: [HOST, { name: "STATE", words: ["open", "close"] }],
  options: { ...NEW_OPTION, ...ACTION_OPTIONS, ...OPERATOR_OPTIONS, ...JSON_OPTION, ...HELP_OPTION },
  notes: `open   ends new and waiting sessions as throttled for breaker.openSeconds; then single requests test the host
close  lets all requests pass, and forgets the errors counted so far
Slots that are held stay held. ${AUDITED}`,
  examples: ["slotkeeper breaker api.example.com open", "slotkeeper breaker api.example.com close --yes"],
  exits: ACTION_EXITS,
} as const satisfies Command;
