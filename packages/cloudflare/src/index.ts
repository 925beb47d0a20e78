/** `@slotkeeper/cloudflare`: the Slotkeeper service as Durable Objects of a Cloudflare Worker. */
export { type ServeOptions, serve, slotFetch } from "./slot-fetch.ts";
export { type SlotObject, type SlotObjectClass, type SlotObjectOptions, slotObject } from "./slot-object.ts";
export type { Placement } from "./slot-router.ts";
export type { ObjectState, ObjectStorage, SlotNamespace, SlotStub, SqlStorage } from "./workers.ts";
