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
const KEY_VARIABLES = new Set<string>([...VARIABLES.token, ...VARIABLES.internalToken, "SLOTKEEPER_AUTH__TOKENS"]);

/** An empty variable counts as absent, as in the service. */
export function variable(names: readonly string[]): string | undefined {
  return names.map((name) => process.env[name]).find((value) => value !== undefined && value !== "");
}

/**
 * The environment for a command that `exec` runs. The keys of the service are left out unless they are asked for, because
 * the command rarely needs them and may log its environment.
 */
export function withoutKeys(mayHaveKeys: boolean): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([key]) => mayHaveKeys || !KEY_VARIABLES.has(key));
  return Object.fromEntries(kept);
}
