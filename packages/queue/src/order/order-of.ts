import type { HostPolicy } from "../host-policy.ts";
import type { Order } from "./contract.ts";
import { Fifo } from "./fifo.ts";
import { PlainOrder } from "./plain-order.ts";
import { SlotSeconds } from "./slot-seconds.ts";
import type { WeightedSettings } from "./weighted/numbers.ts";
import { WeightedOrder } from "./weighted/weighted-order.ts";

/** The order of a host by its configuration. */
export function orderOf(name: HostPolicy["order"] | undefined, scheduler: WeightedSettings | undefined): Order {
  const plain = new PlainOrder(name === "fifo" ? () => new Fifo() : () => new SlotSeconds());
  return scheduler === undefined ? plain : new WeightedOrder(scheduler, plain);
}
