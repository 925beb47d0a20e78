import { budgetOfOrder } from "@slotkeeper/protocol";
import type { HostPolicy } from "../host-policy.ts";
import { ChargeOrder } from "./charge-order.ts";
import type { Order } from "./contract.ts";
import { Fifo, PlainOrder } from "./plain-order.ts";
import { SlotSeconds } from "./slot-seconds.ts";
import type { WeightedSettings } from "./weighted/numbers.ts";
import { WeightedOrder } from "./weighted/weighted-order.ts";

/** The order of the lines of a class by the configuration of the host. */
export function orderOf(
  ofClass: string,
  policy: HostPolicy | undefined,
  scheduler: WeightedSettings | undefined,
): Order {
  const plain = plainOrderOf(ofClass, policy);
  return scheduler === undefined ? plain : new WeightedOrder(ofClass, scheduler, plain);
}

function plainOrderOf(ofClass: string, policy: HostPolicy | undefined): Order {
  if (policy !== undefined && budgetOfOrder(policy.order) !== undefined) return new ChargeOrder(ofClass, policy);
  return new PlainOrder(ofClass, policy?.order === "fifo" ? newFifo : newSlotSeconds);
}

const newFifo = (): Fifo => new Fifo();
const newSlotSeconds = (): SlotSeconds => new SlotSeconds();
