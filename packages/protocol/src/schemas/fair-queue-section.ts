import { HOST_LIMITS } from "../settings/host-limits.ts";
import { FairQueueSchema, HostSchema } from "./fair-queue-schema.ts";
import { aliasesOf } from "./settings-schema.ts";
import * as Type from "./type.ts";

const functionName = Type.Optional(
  Type.String({ description: "no effect any more: the store calls its own functions" }),
);

/** Names of the original's SQL functions. Accepted, so that a configuration of the original service still loads. */
export const RpcSchema = Type.Object(
  {
    throttleCheckFunc: functionName,
    registerWaiterFunc: functionName,
    releaseWaiterFunc: functionName,
    tryAcquireFunc: functionName,
    releaseFunc: functionName,
  },
  { additionalProperties: false, description: "no effect any more: the store calls its own functions" },
);

const closed = { additionalProperties: false } as const;
const aliases = aliasesOf(HOST_LIMITS);

/** The section `fairQueue` as it may be written: with the other names of its keys. */
export const FairQueueSectionSchema = Type.Object(
  {
    ...FairQueueSchema.properties,
    ...aliases,
    hosts: Type.Optional(
      Type.recordOf(Type.Object({ ...HostSchema.properties, ...aliases }, closed), {
        description: "overrides by host name: see below",
      }),
    ),
    rpc: Type.Optional(RpcSchema),
  },
  closed,
);
