/**
 * Changes the limits of a running limiter.
 *
 * UPDATE1  Everything is checked before anything changes.
 * UPDATE2  Nothing is lost: charges, debts, holders, waiters and their order stay. New budgets start full, and waiters
 *     pay for them as well.
 * UPDATE3  A waiter whose cost can never be paid under the new limits is refused with a `RangeError`.
 */
import { anyObject, check, type Rules, range, readOptions } from "../options.ts";
import type { LimiterGate } from "./limiter-gate.ts";
import type { LimiterTicket } from "./limiter-slot.ts";
import { finiteSlots, type LimiterUpdate, leftOut, PER_KEY_RULES, readFields, UPDATE_RULES } from "./options.ts";

export function updateLimits(gate: LimiterGate, options: LimiterUpdate): void {
  const { policy, line, ledger, adaptive } = gate;
  check("options", anyObject, options);
  const given = readOptions(options, UPDATE_RULES);
  const { slots = policy.slots, budgets, perKey = {}, ageAfterMs = policy.ageAfterMs } = given;
  if (adaptive) check("slots", finiteSlots("because they are adaptive"), slots);
  if (!gate.isKeyed) check("perKey", leftOut("the limiter was created without it"), given.perKey);
  const ofKeys = readFields("perKey", perKey, PER_KEY_RULES as Rules<typeof perKey>);
  ledger.update(budgets, ofKeys.budgets, gate.time.now());
  line.slotsPerKey = ofKeys.slots ?? line.slotsPerKey;
  line.ageAfterMs = policy.ageAfterMs = ageAfterMs;
  if (slots !== policy.slots) resize(gate, slots);
  gate.withoutServing(() => fitIn(gate));
}

function resize(gate: LimiterGate, slots: number): void {
  gate.policy.slots = slots;
  gate.adaptive?.resize(slots);
  gate.capacity = gate.adaptive?.limit ?? slots;
  gate.emit(undefined, "resized");
}

function fitIn(gate: LimiterGate): void {
  const { defaults, keys } = gate.ledger;
  for (const ticket of keys.waiters()) {
    ticket.costs = defaults.map((one, index) => ticket.costs[index] ?? one);
    const error = tooDear(gate, ticket);
    if (error) gate.reject(ticket, "rejected", error);
  }
  const now = gate.time.now();
  for (const key of keys.states.values()) if (key.waiting > 0) gate.line.place(key, now);
}

function tooDear({ ledger }: LimiterGate, { costs, keyState }: LimiterTicket): Error | undefined {
  const mostOf = (index: number): number => ledger.mostOf(index, keyState !== ledger.keys.none);
  const index = costs.findIndex((cost, at) => cost > mostOf(at));
  if (index < 0) return undefined;
  const payable = range(`at most ${mostOf(index)} under the new limits`, () => false);
  return payable(`cost.${ledger.names[index]}`, costs[index]);
}
