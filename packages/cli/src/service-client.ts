import { SlotClient } from "@slotkeeper/client";
import { mustBeCarried } from "./carried.ts";
import { addressOf, type ServiceFlags, sharedKey } from "./service-flags.ts";

/** Throws a `TypeError` that names the flag if its value is invalid. */
export function clientOf({ url, token, header }: ServiceFlags): SlotClient {
  const key = sharedKey(token);
  const address = addressOf(url);
  mustBeCarried({ url: address, header, token: key });
  return new SlotClient({ url: address, token: key, ...(header !== undefined && { header }) });
}
