import { budgetOfOrder } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { ChargeOrder } from "./charge-order.ts";
import type { Order } from "./contract.ts";
import { Fifo } from "./fifo.ts";
import { PlainOrder } from "./plain-order.ts";
import { SlotSeconds } from "./slot-seconds.ts";
import type { WeightedSettings } from "./weighted/numbers.ts";
import { WeightedOrder } from "./weighted/weighted-order.ts";

/** The order of a host by its configuration. */
export function orderOf(policy: HostPolicy | undefined, scheduler: WeightedSettings | undefined): Order {
  const plain = plainOrderOf(policy);
  return scheduler === undefined ? plain : new WeightedOrder(scheduler, plain);
}

function plainOrderOf(policy: HostPolicy | undefined): Order {
  if (policy !== undefined && budgetOfOrder(policy.order) !== undefined) return new ChargeOrder(policy);
  return new PlainOrder(policy?.order === "fifo" ? () => new Fifo() : () => new SlotSeconds());
}
