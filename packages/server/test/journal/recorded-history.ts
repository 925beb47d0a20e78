import { openJournaledMemoryStore } from "@slotkeeper/server/internals";
import type { FakeClock } from "slotkeeper/testing";
import type { MemoryDisk } from "./memory-disk.ts";
import { Calls, policyOf } from "./store-calls.ts";

export const POLICY = policyOf({ maxSlotPerHost: 4, maxSlotPerIp: 2, maxWaitersPerHost: 0 });
const BUCKETS = ["a", "b", "c"];

/** What a client received or requested, and the length of the file at that time. */
type Event =
  | { readonly kind: "granted"; readonly session: string; readonly slotToken: string; readonly fence: number }
  | { readonly kind: "end-asked"; readonly session: string }
  | { readonly kind: "released" | "withdrawn" | "undone"; readonly session: string };

export interface KnownEvent {
  readonly event: Event;
  readonly length: number;
}

export type Step = "acquire" | "release" | "withdraw" | "renew" | "undo" | "time";
export type Plan = readonly (readonly { readonly step: Step; readonly pick: number }[])[];

export async function openOn(disk: MemoryDisk, clock: FakeClock, tag: string, compactAfterBytes = 1e9) {
  const opened = await openJournaledMemoryStore({
    path: "journal",
    disk,
    clock,
    // Of the machine, it would add the time that the test takes to the time of the store.
    uptime: async () => ({ boot: "one start of the machine", ms: clock.now() }),
    newTokenKey: () => `key-${tag}`,
    compactAfterBytes,
  });
  return { ...opened, calls: new Calls(opened.store, POLICY) };
}

/** Clients that follow the plan. The steps of a group run at the same time. */
export async function record(
  disk: MemoryDisk,
  clock: FakeClock,
  plan: Plan,
  compactAfterBytes?: number,
): Promise<KnownEvent[]> {
  const known: KnownEvent[] = [];
  const { calls, close } = await openOn(disk, clock, "first", compactAfterBytes);
  const held: { session: string; slotToken: string }[] = [];
  let sessions = 0;
  const note = (event: Event) => known.push({ event, length: disk.content?.length ?? 0 });
  const acquire = async (pick: number) => {
    const session = `${BUCKETS[pick % BUCKETS.length]}-${sessions++}`;
    const slot = await calls.grant(session);
    if (slot === undefined) return;
    note({ kind: "granted", session, slotToken: slot.slotToken, fence: slot.fence });
    held.push({ session, slotToken: slot.slotToken });
  };
  const end = async (pick: number, kind: "released" | "withdrawn" | "undone") => {
    const [one] = held.splice(pick % Math.max(1, held.length), 1);
    if (one === undefined) return;
    note({ kind: "end-asked", session: one.session });
    if (kind === "withdrawn") await calls.withdraw(one.session);
    else if (kind === "undone") await calls.undo(one.session);
    else await calls.release(one.slotToken, 200);
    note({ kind, session: one.session });
  };
  for (const group of plan) {
    await Promise.all(
      group.map(async ({ step, pick }) => {
        if (step === "acquire") await acquire(pick);
        else if (step === "time") clock.advance(pick % 100);
        else if (step === "renew") await calls.renew(held[pick % Math.max(1, held.length)]?.slotToken ?? "");
        else await end(pick, step === "release" ? "released" : step === "withdraw" ? "withdrawn" : "undone");
      }),
    );
  }
  await close();
  return known;
}
