import type { QueueEvent, Refusal } from "@slotkeeper/queue";
import { boundsOf } from "./catalogue.ts";
import { Histogram } from "./histogram.ts";

/** The calls of the port, as label values. */
export type StoreOperation = "commit" | "read" | "beat" | "peek" | "hostKeys" | "totals" | "instances" | "cleanup";

/** Counts events as they happen. Observing an event costs a few additions and allocates nothing. */
export class Instruments {
  readonly wait = new Histogram(boundsOf("wait"));
  readonly hold = new Histogram(boundsOf("hold"));
  readonly cycle = new Histogram(boundsOf("cycle"));
  readonly changed = new Histogram(boundsOf("changed"));
  readonly store = new Map<StoreOperation, Histogram>();
  readonly storeErrors = new Map<StoreOperation, number>();
  readonly ended = { granted: 0, throttled: 0, timeout: 0, canceled: 0 };
  readonly rejects = { overloaded: 0, breaker: 0, deadline: 0, idle: 0, other: 0 };
  readonly commitRefusals: Record<Refusal, number> = { conflict: 0, reserved: 0, clock: 0, slots: 0 };
  started = 0;
  released = 0;
  reclaimed = 0;
  lateReleases = 0;
  uncollected = 0;
  returned = 0;
  notifications = 0;
  listenersDropped = 0;
  controllerFailures = 0;
  badRequests = 0;

  observe(event: QueueEvent): void {
    switch (event.type) {
      case "session-created":
        this.started++;
        return;
      case "granted":
        this.ended.granted++;
        this.wait.observe(event.waitedMs / 1000);
        return;
      case "released":
        this.released++;
        if (event.heldMs !== undefined) this.hold.observe(event.heldMs / 1000);
        return;
      case "cycle":
        this.cycle.observe(event.tookMs / 1000);
        return;
      case "throttled":
        // A call that is refused as overloaded has no session.
        if (event.session !== undefined) this.ended.throttled++;
        this.rejects.breaker++;
        return;
      case "timeout":
        this.ended.timeout++;
        this.rejects[event.reason === "deadline" || event.reason === "idle" ? event.reason : "other"]++;
        return;
      case "canceled":
        this.ended.canceled++;
        return;
      case "overloaded":
        this.rejects.overloaded++;
        return;
      case "reclaimed":
        this.reclaimed++;
        return;
      case "late-release":
        this.lateReleases++;
        return;
      case "uncollected":
        this.uncollected++;
        return;
      case "returned":
        this.returned++;
        return;
      case "probe-decision":
      case "store-error":
    }
  }

  storeCall(operation: StoreOperation, tookMs: number): void {
    let histogram = this.store.get(operation);
    if (histogram === undefined) {
      histogram = new Histogram(boundsOf("store"));
      this.store.set(operation, histogram);
    }
    histogram.observe(tookMs / 1000);
  }

  storeError(operation: StoreOperation): void {
    this.storeErrors.set(operation, (this.storeErrors.get(operation) ?? 0) + 1);
  }
}
