import type { Clock } from "slotkeeper";
import type { Agenda } from "../agenda.ts";
import type { QueueOptions } from "../options.ts";
import type { SlotStore } from "../store/slot-store.ts";
import type { QueueEvent } from "./events.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Outbox } from "./outbox.ts";

/** What the parts of one engine share. */
export interface EngineContext {
  readonly clock: Clock;
  readonly store: SlotStore;
  /** The name of this instance towards the store. */
  readonly instance: string;
  /** In [0, 1). */
  readonly random: () => number;
  readonly agenda: Agenda;
  readonly outbox: Outbox;
  /** As they are now: they change live. */
  options(): QueueOptions;
  emit(event: QueueEvent): void;
  /** Runs the task after what is at hand now. */
  soon(task: () => void): void;
  /** Something happened at the host: its cycle runs. */
  wake(host: HostQueue): void;
}
