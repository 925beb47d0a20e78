import { type ServiceSlot, SlotClient } from "@slotkeeper/client";
import type { ServiceState } from "@slotkeeper/server";
import { acquireVisibly } from "./acquire-visibly.ts";
import { ServiceCallError } from "./call-service.ts";
import type { ACQUIRE } from "./commands/calling.ts";
import type { FlagsOf } from "./commands/command.ts";
import { callOperator, type HostState } from "./operate/call-operator.ts";
import { addressOf, sharedKey } from "./service-flags.ts";
import { acquireBy } from "./wait-flags.ts";
import type { SlotUse } from "./wait-words.ts";

/** How long the service may take to show who holds the slots. The wait does not depend on it. */
const LOOK_MS = 2_000;

/** Waits for a slot of the service, as the flags say. */
export function acquireOverService(flags: FlagsOf<typeof ACQUIRE>, signal: AbortSignal): Promise<ServiceSlot> {
  const keeper = new SlotClient({ url: addressOf(flags.url), ...sharedKey(flags) });
  const { host = "", max } = flags;
  return acquireVisibly({
    name: host,
    isShown: flags.quiet !== true && flags.json !== true,
    look: useWatch(flags, max === undefined ? host : `sem:${host}`),
    acquire: (onPending) => acquireBy(keeper, flags, { signal, onPending }),
  });
}

/** Reads who uses the slots. Only operators may, so a caller without the internal token often gets no answer. */
function useWatch(flags: FlagsOf<typeof ACQUIRE>, name: string): () => Promise<SlotUse | undefined> {
  const path = `/state?by=name&sessions=0&host=${encodeURIComponent(name)}`;
  let isRefused = false;
  return async () => {
    if (isRefused) return undefined;
    try {
      const state = await callOperator(flags, path, { signal: AbortSignal.timeout(LOOK_MS) });
      return useOf((state as ServiceState).hosts[0]);
    } catch (error) {
      isRefused = error instanceof ServiceCallError && error.code === "REFUSED";
      return undefined;
    }
  };
}

function useOf(host: HostState | undefined): SlotUse | undefined {
  if (host === undefined || !host.limit) return undefined;
  const holders = host.slots
    .map(({ bucket, heldMs }) => ({ bucket, heldMs }))
    .sort((a, b) => (b.heldMs ?? 0) - (a.heldMs ?? 0));
  return { inUse: host.inFlight, slots: host.limit, holders };
}
