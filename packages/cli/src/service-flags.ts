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

export const SERVICE_HELP = `      --url URL       address of the service; default http://127.0.0.1:8080
      --token KEY     the shared key; better set SLOTKEEPER_AUTH__TOKEN, which other users cannot see in the process list
      --header NAME   header of the shared key; default X-FQ-Auth`;

export interface ServiceFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly header?: string | undefined;
}

export const DEFAULT_URL = "http://127.0.0.1:8080";

/** Throws a `TypeError` that names the flag, where its value makes no sense. */
export function clientOf({ url = DEFAULT_URL, token, header }: ServiceFlags): SlotClient {
  mustBeCarried({ url, header, ...sharedKey(token) });
  return new SlotClient({ url, ...sharedKey(token), ...(header !== undefined && { header }) });
}

function sharedKey(flag: string | undefined): { token?: string } {
  const token = flag ?? process.env["SLOTKEEPER_AUTH__TOKEN"];
  return token === undefined || token === "" ? {} : { token };
}

/** The headers of a call that the client has no method for. */
export function sharedKeyHeaders({ token, header = "X-FQ-Auth" }: ServiceFlags): Record<string, string> {
  const key = sharedKey(token).token;
  mustBeCarried({ header, token: key });
  return key === undefined ? {} : { [header]: key };
}
