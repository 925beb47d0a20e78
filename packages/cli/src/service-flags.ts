import { SlotClient } from "@slotkeeper/client";
import { mustBeCarried } from "./carried.ts";

/** The flags for the address and keys of the service, shared by all commands that call it. */
export const SERVICE_OPTIONS = {
  url: { type: "string" },
  token: { type: "string" },
  header: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

export const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_HEADER = "X-FQ-Auth";

export const SERVICE_HELP = `      --url URL       address of the service; default ${DEFAULT_URL}
      --token KEY     the shared key; better set SLOTKEEPER_AUTH__TOKEN, which other users cannot see in the process list
      --header NAME   header of the shared key; default ${DEFAULT_HEADER}`;

export interface ServiceFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly header?: string | undefined;
}

/** Throws a `TypeError` that names the flag if its value is invalid. */
export function clientOf({ url = DEFAULT_URL, token, header }: ServiceFlags): SlotClient {
  mustBeCarried({ url, header, ...sharedKey(token) });
  return new SlotClient({ url, ...sharedKey(token), ...(header !== undefined && { header }) });
}

function sharedKey(flag: string | undefined): { token?: string } {
  const token = flag ?? variable("SLOTKEEPER_AUTH__TOKEN");
  return token === undefined ? {} : { token };
}

/** The bearer token of the internal API. */
export function internalToken(flag: string | undefined): string | undefined {
  return flag ?? variable("SLOTKEEPER_INTERNAL_API_TOKEN");
}

/** An empty variable counts as absent, as in the service. */
function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** The headers for calls that the client has no method for. */
export function sharedKeyHeaders({ token, header = DEFAULT_HEADER }: ServiceFlags): Record<string, string> {
  const key = sharedKey(token).token;
  mustBeCarried({ header, token: key });
  return key === undefined ? {} : { [header]: key };
}
