import type { ServiceSlot } from "@slotkeeper/client";
import { acquireVisibly } from "./acquire-visibly.ts";
import { callService, ServiceCallError } from "./call-service.ts";
import { clientOf } from "./service-client.ts";
import { operatorHeaders, type ServiceFlags } from "./service-flags.ts";
import { acquireBy, type WaitFlags } from "./wait-flags.ts";
import type { SlotUse } from "./wait-words.ts";

type Flags = WaitFlags &
  ServiceFlags & {
    readonly "internal-token"?: string | undefined;
    readonly quiet?: boolean | undefined;
    readonly json?: boolean | undefined;
  };

/** How long the service may take to show who holds the slots. The wait does not depend on it. */
const LOOK_MS = 2_000;

/** Waits for a slot of the service, as the flags say. */
export function acquireOverService(flags: Flags, signal: AbortSignal): Promise<ServiceSlot> {
  const keeper = clientOf(flags);
  const { host = "", max } = flags;
  const watch = new UseWatch(flags, max === undefined ? host : `sem:${host}`);
  return acquireVisibly({
    name: host,
    isShown: flags.quiet !== true && flags.json !== true,
    look: () => watch.look(),
    acquire: (onPending) => acquireBy(keeper, flags, { signal, onPending }),
  });
}

/** The part of the state that is shown. */
interface State {
  readonly hosts: readonly {
    readonly inFlight: number;
    readonly limit?: number;
    readonly slots: readonly { readonly bucket: string; readonly heldMs?: number }[];
  }[];
}

/** Reads who uses the slots. Only operators may, so a caller without the internal token often gets no answer. */
class UseWatch {
  readonly #flags: Flags;
  readonly #name: string;
  #isRefused = false;

  constructor(flags: Flags, name: string) {
    this.#flags = flags;
    this.#name = name;
  }

  async look(): Promise<SlotUse | undefined> {
    if (this.#isRefused) return undefined;
    const { url, "internal-token": token } = this.#flags;
    try {
      const init = { headers: operatorHeaders(token), signal: AbortSignal.timeout(LOOK_MS) };
      const path = `/api/v0/state?by=name&sessions=0&host=${encodeURIComponent(this.#name)}`;
      const { hosts } = (await callService(url, path, init)) as State;
      return useOf(hosts[0]);
    } catch (error) {
      this.#isRefused = error instanceof ServiceCallError && error.code === "REFUSED";
      return undefined;
    }
  }
}

function useOf(host: State["hosts"][number] | undefined): SlotUse | undefined {
  if (host === undefined || !host.limit) return undefined;
  const holders = host.slots
    .map(({ bucket, heldMs }) => ({ bucket, heldMs }))
    .sort((a, b) => (b.heldMs ?? 0) - (a.heldMs ?? 0));
  return { inUse: host.inFlight, slots: host.limit, holders };
}
