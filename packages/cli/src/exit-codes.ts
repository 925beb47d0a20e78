/**
 * Every exit code of the command with its meaning. The help texts are made from this table, and a test compares it with
 * `docs/reference/errors.md`.
 */
export const EXIT_CODES = {
  ok: { code: 0, meaning: "done" },
  failed: { code: 1, meaning: "failed; standard error says why" },
  usage: { code: 2, meaning: "wrong usage" },
  config: { code: 3, meaning: "the configuration has problems; all are listed" },
  listen: { code: 4, meaning: "cannot listen on the address" },
  database: {
    code: 5,
    meaning: "cannot use the database: unreachable, a missing permission, or another schema version",
  },
  noSlot: { code: 6, meaning: "no slot: the wait timed out, the breaker is open, or the queue is full" },
  unreachable: { code: 7, meaning: "the service is unreachable" },
  refused: { code: 8, meaning: "the service refused the call" },
  lost: { code: 9, meaning: "`exec`: the slot was lost while the command ran" },
  migrationsMissing: { code: 10, meaning: "`migrate --status`: migrations of this version are missing" },
  schemaForeign: { code: 11, meaning: "`migrate --status`: the schema belongs to a newer version, or was changed" },
  warnings: { code: 12, meaning: "`doctor`: warnings, no problem" },
  problems: { code: 13, meaning: "`doctor`: at least one problem" },
  keeper: { code: 14, meaning: "the keeper of this machine cannot be started or used; its log is shown" },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>;

/** The exit code that a shell uses for a command that cannot start. */
export const CANNOT_START = 127;
/** The usual reason, as the end of the message. */
export const NO_PROGRAM = "there is no such program, or it is not executable";

export type ExitName = keyof typeof EXIT_CODES;
export type ExitCode = (typeof EXIT_CODES)[ExitName]["code"];

export const EXIT = Object.fromEntries(Object.entries(EXIT_CODES).map(([name, { code }]) => [name, code])) as {
  readonly [Name in ExitName]: (typeof EXIT_CODES)[Name]["code"];
};

const ALL = Object.keys(EXIT_CODES) as ExitName[];

/** The section "Exit codes" of a help text: a line for each of these codes, by default for all. */
export function exitHelp(names: readonly ExitName[] = ALL): string {
  const lines = names.map((name) => `  ${String(EXIT_CODES[name].code).padEnd(4)}${EXIT_CODES[name].meaning}`);
  return `Exit codes\n${lines.join("\n")}\n`;
}
