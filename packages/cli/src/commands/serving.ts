import { command, configOption, flag, JSON_OPTION, valued } from "./shared-options.ts";

/** The commands that run a service, and those for its machine and its database. */

export const SERVE = command({
  name: "serve",
  does: "serves slots over HTTP",
  usage: [
    "[-c config.json] [--data FILE] [--listen ADDRESS] [--wait-for-store SECONDS] [--print-config] [--json]",
    "--socket PATH",
  ],
  options: {
    config: configOption("configuration file; without one, state is kept in memory"),
    data: valued("FILE", "keep the state in this file (a journal), so that a restart loses nothing"),
    listen: valued(
      "ADDR",
      "host:port or :port; port 0 chooses a free port; default 127.0.0.1:8080, with auth.enabled :8080",
    ),
    socket: valued(
      "PATH",
      "instead of an address: be the keeper of this machine's slots (slotkeeper exec --name), and stay",
    ),
    "wait-for-store": valued(
      "SECONDS",
      "how long to wait for a database that cannot be reached yet; default 20; 0: do not wait",
    ),
    "print-config": flag("show every value and where it comes from, then exit; secrets are not shown"),
    json: flag("logs and messages as JSON lines, also on a terminal"),
  },
  notes: `Values come from flags, then SLOTKEEPER_… variables (SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS), then the controller where one is
configured, then the file, then defaults.

Signals
  SIGHUP reads the configuration again; SIGTERM and SIGINT stop it gracefully; a second signal stops it at
  once. While the service waits for its database, one signal stops it at once.`,
  examples: [
    "slotkeeper serve",
    "slotkeeper serve -c config.json --data /var/lib/slotkeeper/journal",
    "SLOTKEEPER_AUTH__ENABLED=true SLOTKEEPER_AUTH__TOKEN=… slotkeeper serve --listen :8080",
    "slotkeeper serve -c config.json --print-config",
  ],
  exits: ["ok", "failed", "usage", "config", "listen", "database", "keeper"],
});

export const MIGRATE = command({
  name: "migrate",
  does: "brings the schema of the database to this version",
  usage: ["-c config.json [--print | --status] [--json]"],
  options: {
    config: configOption("configuration file; backend.postgres.dsn and .schema say where the database is"),
    print: flag("print the SQL of all migrations and change nothing; needs no database"),
    status: flag("show which migrations are applied and change nothing; the exit code reports whether all are"),
    ...JSON_OPTION,
  },
  notes: `Migrations run in order, each in one transaction. Migrations that are already applied are skipped, and several runs at the
same time wait for each other. A database of the original service is converted in place, with its slots, cooldowns and
waiters. A schema of a newer version is refused.`,
  examples: [
    "slotkeeper migrate -c config.json",
    "slotkeeper migrate -c config.json --status",
    "slotkeeper migrate -c config.json --print > migrations.sql",
    "SLOTKEEPER_BACKEND__POSTGRES__DSN=postgres://… slotkeeper migrate",
  ],
  exits: ["ok", "failed", "usage", "config", "database", "migrationsMissing", "schemaForeign"],
});

export const DOCTOR = command({
  name: "doctor",
  does: "finds out why a service does not work, and how to fix it",
  usage: ["[-c config.json] [--data FILE] [--listen ADDRESS] [--json]"],
  options: {
    config: configOption("configuration file of the service; without one, the defaults"),
    data: valued("FILE", "the journal, as for serve"),
    listen: valued("ADDR", "the address, as for serve"),
    json: flag("print JSON: see docs/reference/doctor.md"),
  },
  notes: `It checks the configuration, the address, the service that runs there, the keys and the limits. With a journal it checks the file; with PostgreSQL the
version of the server, the schema, permissions, notifications, the clocks and the running instances. It changes nothing,
prints no secret, and can run beside the service. Run it as the user of the service, with the same environment.`,
  examples: [
    "slotkeeper doctor -c config.json",
    "slotkeeper doctor --data /var/lib/slotkeeper/journal",
    `slotkeeper doctor -c config.json --json | jq -r '.findings[] | select(.severity != "ok") | .fix'`,
  ],
  exits: ["ok", "usage", "warnings", "problems"],
});

export const KEEPER = command({
  name: "keeper",
  does: "keeps the slots of this machine. Other commands start it when they need it",
  usage: ["[--socket PATH] [--log FILE]"],
  options: {
    socket: valued("PATH", "the socket; default: SLOTKEEPER_SOCKET, else one in /tmp"),
    log: valued("FILE", "the file that its output goes to; removed when it ends"),
  },
  notes: "It ends when no command has held or waited for 10 s. For one that stays: slotkeeper serve --socket PATH.",
  isInternal: true,
});

export const COMPLETION = command({
  name: "completion",
  does: "prints the script with which a shell completes commands and flags",
  usage: ["bash|zsh|fish"],
  arguments: [{ name: "SHELL", words: ["bash", "zsh", "fish"] }],
  options: {},
  examples: [
    "source <(slotkeeper completion bash)                        in ~/.bashrc",
    "source <(slotkeeper completion zsh)                         in ~/.zshrc, after compinit",
    "slotkeeper completion fish > ~/.config/fish/completions/slotkeeper.fish",
  ],
  exits: ["ok", "usage"],
});
