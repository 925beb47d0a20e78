import type { ServiceConfig } from "@slotkeeper/protocol";
import { type Advice, adviceIf } from "./advice.ts";
import { sharedKeys } from "./settings.ts";

/**
 * Advice about keys that can be guessed, that no request could carry, or that do not protect what their author may
 * expect.
 */
export function keyAdvice(config: ServiceConfig): Advice[] {
  return [...shortKeys(config), ...unaskedKeys(config), ...lostKeys(config), ...sameKeys(config)];
}

/** The original accepted any length. */
const SHORT_KEY = 16;

/** Node refuses requests whose headers are longer than 16 KiB in total; proxies often allow only 8 KiB. */
const LONGEST_KEY = 4_096;

function shortKeys(config: ServiceConfig): Advice[] {
  const keys = {
    "auth.token": config.auth?.enabled === true ? sharedKeys(config) : [],
    internalApiToken: config.internalApiToken === undefined ? [] : [config.internalApiToken],
    "metrics.token": config.metrics?.token === undefined ? [] : [config.metrics.token],
    tokenKeys: config.tokenKeys ?? [],
  };
  return Object.entries(keys)
    .filter(([, secrets]) => secrets.some((secret) => secret.length < SHORT_KEY))
    .map(([path]) => ({
      code: "SHORT_KEY",
      found: `\`${path}\` is shorter than ${SHORT_KEY} characters`,
      why: "such a key can be guessed",
      fix: "Use a random one, for example from `openssl rand -hex 24`.",
    }));
}

function unaskedKeys(config: ServiceConfig): Advice[] {
  return adviceIf(
    config.auth?.enabled !== true && sharedKeys(config).length > 0,
    "SHARED_KEY_NOT_ASKED",
    "a shared key is set, but `auth.enabled` is not true",
    "the service does not ask for the key: any caller may take slots",
    "Set `auth.enabled` to true, or remove `auth.token` and `auth.tokens`.",
  );
}

/** Headers of the connection or of the message itself. Clients and proxies set or remove them. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(
  `connection content-encoding content-length content-type date expect host keep-alive origin proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade via`.split(
    " ",
  ),
);

function lostKeys(config: ServiceConfig): Advice[] {
  const { enabled, header = "" } = config.auth ?? {};
  if (enabled !== true) return [];
  const found = `\`auth.header\` is ${JSON.stringify(header)}`;
  const fix = "Choose a name of your own with hyphens, for example X-FQ-Auth.";
  const isReserved = OF_THE_CONNECTION.has(header.toLowerCase());
  return [
    ...adviceIf(
      sharedKeys(config).some((key) => key.length > LONGEST_KEY),
      "KEY_TOO_LONG",
      `a shared key is longer than ${LONGEST_KEY} characters`,
      "servers and proxies refuse requests with headers of that size, so no caller could send it",
      "Use a shorter one: 48 characters are enough.",
    ),
    ...adviceIf(
      isReserved,
      "HEADER_RESERVED",
      found,
      "clients and proxies set or remove that header themselves, so a caller's key does not arrive",
      fix,
    ),
    ...adviceIf(
      !isReserved && header.includes("_"),
      "HEADER_UNDERSCORE",
      found,
      "nginx and other proxies drop headers whose name has an underscore, so the key does not arrive behind one",
      fix,
    ),
  ];
}

function sameKeys(config: ServiceConfig): Advice[] {
  const { internalApiToken: internal } = config;
  return adviceIf(
    config.auth?.enabled === true && internal !== undefined && sharedKeys(config).includes(internal),
    "SAME_KEY",
    "`internalApiToken` is also a shared key",
    "every caller can use the operators' routes: revoke slots, change limits, open the breaker",
    "Use a different key for each.",
  );
}
