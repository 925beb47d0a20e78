import { CANNOT_START } from "../exit-codes.ts";
import {
  command,
  flag,
  JSON_OPTION,
  NAME_OPTIONS,
  repeated,
  SERVICE_OPTIONS,
  valued,
  WAIT_OPTIONS,
} from "./shared-options.ts";

/** The commands that get slots and give them back. */

export const ACQUIRE = command({
  name: "acquire",
  does: "waits for a slot and prints its token",
  usage: ["--host NAME [--bucket NAME | --max N] [--width N] [--cost NAME=N] [--timeout S] [--url URL] [--json]"],
  options: {
    ...WAIT_OPTIONS,
    ...SERVICE_OPTIONS,
    json: flag("print token, fence, lease and charges as JSON"),
  },
  notes:
    "The slot is lost when its lease ends (30 s unless configured otherwise). For longer work use `slotkeeper exec`, which renews it. A slot whose token cannot be written to standard output is released, and the exit code is 1.",
  examples: [
    'slot=$(slotkeeper acquire --host api.example.com --bucket me) && curl https://api.example.com/; slotkeeper release "$slot"',
    "slotkeeper acquire --host nightly-jobs --max 2 --timeout 60 --json",
  ],
  exits: ["ok", "failed", "usage", "noSlot", "unreachable", "refused"],
  exitNote: "otherwise 128 + n, if signal n ended the wait",
});

export const RELEASE = command({
  name: "release",
  does: "gives a slot back",
  usage: ["TOKEN [--status CODE] [--used NAME=N] [--url URL] [--json]"],
  arguments: [{ name: "TOKEN" }],
  options: {
    status: valued("CODE", "the upstream's HTTP status, for the circuit breaker"),
    used: repeated(
      "NAME=N",
      "what it really cost of a budget, for example tokens=1234; may be repeated; default: what was charged",
    ),
    ...SERVICE_OPTIONS,
    ...JSON_OPTION,
  },
  notes:
    "A token that holds no slot releases nothing, and no other slot. If the service knows that at once, the exit code is 1.",
  examples: [
    'slotkeeper release "$slot"',
    'slotkeeper release --url http://slots:8080 --status 503 -- "$slot"',
    'slotkeeper release --used tokens=1234 "$slot"',
  ],
  exits: ["ok", "failed", "usage", "unreachable", "refused"],
});

export const EXEC = command({
  name: "exec",
  does: "holds a slot while a command runs",
  usage: [
    "--name NAME [--slots N] [--as GROUP] [--width N] [--timeout S] [--url URL] -- command [arguments]",
    "--host NAME [--bucket NAME | --max N] [--width N] [--cost NAME=N] [--timeout S] [--url URL] -- command [arguments]",
  ],
  takesCommand: true,
  options: {
    ...NAME_OPTIONS,
    ...WAIT_OPTIONS,
    ...SERVICE_OPTIONS,
    "pass-token": flag("leave the keys of the service in the environment of the command"),
    json: flag("print failures as JSON, on standard error"),
  },
  notes: `With --name and without --url and SLOTKEEPER_URL, the slots are those of this machine, for this user. No service is needed.
The slot lasts until the command has ended, and the processes that it left behind, even if this command is killed.
With a service, the slot is renewed while the command runs, and released when it ends.

SIGTERM and SIGHUP are passed to the command. SIGINT and SIGQUIT, too, unless the terminal has sent them to both.
Its environment has SLOTKEEPER_NAME, SLOTKEEPER_FENCE and, on one machine, SLOTKEEPER_SLOT (1 to N), and no key of a service.`,
  examples: [
    "slotkeeper exec --name gpu -- python train.py",
    'slotkeeper exec --name build --slots 3 --as "$WORKTREE" -- cargo build',
    "slotkeeper exec --url http://slots:8080 --name nightly-jobs --slots 2 -- ./backup.sh",
    "slotkeeper exec --url http://slots:8080 --host api.example.com --bucket cron --timeout 600 -- curl https://api.example.com/",
  ],
  exits: ["usage", "noSlot", "unreachable", "refused", "lost", "keeper"],
  exitNote: `otherwise the exit code of the command: 128 + n if signal n ended it, ${CANNOT_START} if it could not be started`,
});
