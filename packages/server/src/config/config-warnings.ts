import type { ServiceConfig } from "@slotkeeper/protocol";
import { sharedKeys } from "./settings.ts";

/** What is accepted and yet not as its author may think. Each is a sentence with the path. */
export function configWarnings(config: ServiceConfig): string[] {
  return [...unusedKeys(config), ...shortKeys(config)];
}

function unusedKeys({ rpc, fairQueue }: ServiceConfig): string[] {
  const warnings: string[] = [];
  for (const [path, names] of [
    ["rpc", rpc],
    ["fairQueue.rpc", fairQueue?.rpc],
  ] as const) {
    if (names === undefined || Object.keys(names).length === 0) continue;
    warnings.push(
      `\`${path}\` has no effect: the SQL functions are found by \`backend.postgres.schema\` alone. Remove it.`,
    );
  }
  return warnings;
}

/** The original took any length: such a configuration starts, but can be guessed into. */
const SHORT_KEY = 16;

function shortKeys(config: ServiceConfig): string[] {
  const keys = {
    "auth.token": config.auth?.enabled === true ? sharedKeys(config) : [],
    internalApiToken: config.internalApiToken === undefined ? [] : [config.internalApiToken],
    tokenKeys: config.tokenKeys ?? [],
  };
  return Object.entries(keys)
    .filter(([, secrets]) => secrets.some((secret) => secret.length < SHORT_KEY))
    .map(([path]) => `\`${path}\` is shorter than ${SHORT_KEY} characters: such a key can be guessed`);
}
