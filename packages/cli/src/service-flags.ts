/**
 * The address and the keys of the service, for all commands that call it. `--token` is always the key of callers, and
 * `--internal-token` always the token of operators.
 */
import { mustBeCarried } from "./carried.ts";
import { VARIABLES, variable } from "./variables.ts";

const ADDRESS_OPTIONS = {
  url: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** The flags of commands for callers. */
export const SERVICE_OPTIONS = {
  ...ADDRESS_OPTIONS,
  token: { type: "string" },
  header: { type: "string" },
} as const;

/** The flags of commands for operators. */
export const OPERATOR_OPTIONS = { ...ADDRESS_OPTIONS, "internal-token": { type: "string" } } as const;

export const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_HEADER = "X-FQ-Auth";

const URL_HELP = `      --url URL       address of the service; default: SLOTKEEPER_URL, else ${DEFAULT_URL}`;

export const SERVICE_HELP = `${URL_HELP}
      --token KEY     the shared key of callers; better set SLOTKEEPER_TOKEN, which other users cannot see in the process list
      --header NAME   header of the shared key; default ${DEFAULT_HEADER}`;

export const OPERATOR_HELP = `${URL_HELP}
      --internal-token KEY
                      internalApiToken of the service; better set SLOTKEEPER_INTERNAL_TOKEN, which other users cannot see in
                      the process list. A service without such a token answers only callers on its own machine`;

/** Added to the message of a service that refuses a call because a key is missing or wrong. */
export const KEY_HINTS = {
  token: "Set SLOTKEEPER_TOKEN or pass --token.",
  internalToken: "Set SLOTKEEPER_INTERNAL_TOKEN to its internalApiToken, or pass --internal-token.",
} as const;

export interface ServiceFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly header?: string | undefined;
}

export function addressOf(flag: string | undefined): string {
  return flag ?? variable(VARIABLES.url) ?? DEFAULT_URL;
}

export function sharedKey(flag: string | undefined): string | undefined {
  return flag ?? variable(VARIABLES.token);
}

/** The headers for calls of callers that the client has no method for. */
export function sharedKeyHeaders({ token, header = DEFAULT_HEADER }: ServiceFlags): Record<string, string> {
  const key = sharedKey(token);
  mustBeCarried({ header, token: key });
  return key === undefined ? {} : { [header]: key };
}

/** The headers for calls of the internal API. */
export function operatorHeaders(flag: string | undefined): Record<string, string> {
  const token = flag ?? variable(VARIABLES.internalToken);
  mustBeCarried({ "internal-token": token });
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}
