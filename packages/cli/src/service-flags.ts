/** The address and the keys of the service, for all commands that call it: flags, else variables. */
import { mustBeCarried } from "./carried.ts";
import { DEFAULT_HEADER, DEFAULT_URL } from "./commands/shared-options.ts";
import { VARIABLES, variable } from "./variables.ts";

/** Added to the message of a service that refuses a call because a key is missing or wrong. */
export const KEY_HINTS = {
  token: "Set SLOTKEEPER_TOKEN or pass --token.",
  internalToken: "Set SLOTKEEPER_INTERNAL_TOKEN to its internalApiToken, or pass --internal-token.",
  wrongInternalToken:
    "The token of SLOTKEEPER_INTERNAL_TOKEN or --internal-token is probably not its internalApiToken.",
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
