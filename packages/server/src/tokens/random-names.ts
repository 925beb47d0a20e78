import { randomBytes } from "node:crypto";

/** Names nobody can guess. The prefix of a slot's token is what the scrubber knows it by. */

export const newSlotToken = (): string => `slot_${randomBytes(24).toString("base64url")}`;
export const newSessionId = (): string => randomBytes(18).toString("base64url");
export const newTokenKey = (): string => randomBytes(32).toString("base64url");
export const newRequestId = (): string => randomBytes(9).toString("base64url");
