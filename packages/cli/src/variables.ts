/**
 * The variables that stand in for flags. The second variable of a key is the one that the service itself reads, for
 * commands on its machine.
 */
export const VARIABLES = {
  url: ["SLOTKEEPER_URL"],
  token: ["SLOTKEEPER_TOKEN", "SLOTKEEPER_AUTH__TOKEN"],
  internalToken: ["SLOTKEEPER_INTERNAL_TOKEN", "SLOTKEEPER_INTERNAL_API_TOKEN"],
} as const;

/** The variables with a key of the service. A command that `exec` runs does not get them. */
export const KEY_VARIABLES: readonly string[] = [
  ...VARIABLES.token,
  ...VARIABLES.internalToken,
  "SLOTKEEPER_AUTH__TOKENS",
];

/** An empty variable counts as absent, as in the service. */
export function variable(names: readonly string[]): string | undefined {
  return names.map((name) => process.env[name]).find((value) => value !== undefined && value !== "");
}
