/** Every class with `run`, behind one shape, with one slot each. */
import type { Slot } from "slotkeeper";
import { Limiter } from "slotkeeper/limiter";
import { SharedSemaphore } from "slotkeeper/threads";
import { TransferSlots } from "slotkeeper/transfers";
import type { useWorld } from "./world.ts";

interface CallOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
}

interface TestGate {
  run<T>(work: () => T | Promise<T>, options?: CallOptions): Promise<Awaited<T>>;
  acquire(options?: CallOptions): Promise<Pick<Slot, "release">>;
  readonly inUse: number;
  close(): void;
}

type World = ReturnType<ReturnType<typeof useWorld>>;
type ExpiryOptions = { ttlMs?: number; abortOnExpiry?: boolean };

/** A gate whose calls take the key `a`. */
function ofKey(inner: Pick<ReturnType<World["pool"]>, "run" | "acquire" | "inUse" | "close">): TestGate {
  return {
    run: (work, options) => inner.run("a", work, options),
    acquire: (options) => inner.acquire("a", options),
    get inUse() {
      return inner.inUse;
    },
    close: () => inner.close(),
  };
}

function ofTransfers(clock: World["clock"], kind: "downloads" | "uploads", options: ExpiryOptions): TestGate {
  const inner = new TransferSlots({ maxDownloads: 1, maxUploads: 1, clock, ...options });
  const isUpload = kind === "uploads";
  return {
    run: (work, call) => (isUpload ? inner.runUpload("a", work, call) : inner.runDownload(work, call)),
    acquire: (call) => (isUpload ? inner.acquireUpload("a", call) : inner.acquireDownload(call)),
    get inUse() {
      return inner.stats()[isUpload ? "uploadsActive" : "downloadsActive"];
    },
    close: () => inner.close(),
  };
}

/** The classes whose slots can expire, with `abortOnExpiry`. */
export const expiringGates: [string, (world: World, options?: ExpiryOptions) => TestGate][] = [
  ["Semaphore", (world, options) => world.semaphore(1, options)],
  ["KeyedSemaphore", (world, options) => ofKey(world.keyed(1, options))],
  ["SlotPool", (world, options) => ofKey(world.pool({ max: 1, maxPerKey: 1, ...options }))],
  ["downloads", ({ clock }, options = {}) => ofTransfers(clock, "downloads", options)],
  ["uploads", ({ clock }, options = {}) => ofTransfers(clock, "uploads", options)],
  ["Limiter", ({ clock, guard }, options) => guard.track(new Limiter({ slots: 1, clock, ...options }))],
];

export const gates: [string, (world: World) => TestGate][] = [
  ...expiringGates,
  ["SharedSemaphore", () => SharedSemaphore.create(1)],
];
