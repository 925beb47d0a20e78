/**
 * The address and the keys of the service, for all commands that call it: flags, else variables. A value that no request
 * can carry is a `TypeError` that names the flag: `fetch` would fail later, as if the service were unreachable. Values are
 * secrets or may contain one, so no message shows them.
 */
import type { Flags } from "./commands/command.ts";
import { DEFAULT_HEADER, DEFAULT_URL, type SERVICE_OPTIONS } from "./commands/shared-options.ts";
import { VARIABLES, variable } from "./environment.ts";

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** `fetch` removes white space at the end, such as the newline of a file. */
const HEADER_VALUE = /^[\t -~\x80-\xff]+\s*$/;
const ADDRESS = /^https?:\/\/[^@/]+\/[^?#]*$/;

/** Added to the message of a service that refuses a call because a key is missing or wrong. */
export const KEY_HINTS = {
  token: "Set SLOTKEEPER_TOKEN or pass --token.",
  internalToken: "Set SLOTKEEPER_INTERNAL_TOKEN to its internalApiToken, or pass --internal-token.",
  wrongInternalToken:
    "The token of SLOTKEEPER_INTERNAL_TOKEN or --internal-token is probably not its internalApiToken.",
} as const;

export type ServiceFlags = Flags<typeof SERVICE_OPTIONS>;

export function addressOf(flag: string | undefined): string {
  const url = flag ?? variable(VARIABLES.url) ?? DEFAULT_URL;
  if (URL.canParse(url) && ADDRESS.test(new URL(url).href)) return url;
  throw new TypeError(
    "Expected --url, or SLOTKEEPER_URL, to be an http or https URL without user, password, query and fragment.",
  );
}

/** The key of callers and the header that carries it. */
export function sharedKey({ token, header = DEFAULT_HEADER }: ServiceFlags) {
  if (!HEADER_NAME.test(header)) throw new TypeError("Expected --header to be a name that an HTTP header can have.");
  return { header, token: carried("--token", token ?? variable(VARIABLES.token)) };
}

/** The headers for calls of the internal API. */
export function operatorHeaders(flag: string | undefined): Record<string, string> {
  const token = carried("--internal-token", flag ?? variable(VARIABLES.internalToken));
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

function carried(flag: string, value: string | undefined): string | undefined {
  if (value === undefined || HEADER_VALUE.test(value)) return value;
  throw new TypeError(`Expected ${flag}, or the variable in its place, to be a value that an HTTP header can have.`);
}
