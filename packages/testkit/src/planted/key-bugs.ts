import { widthOf } from "@slotkeeper/protocol";
import type { BookRecord, WaiterRecord } from "@slotkeeper/queue";
import { Ladder } from "@slotkeeper/queue/internals";
import type { Plant } from "../simulator/world.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import { type Keys, patched, withKeys } from "./plants.ts";

/** Planted bugs of the limits of keys. */
export const KEY_BUGS: readonly PlantedBug[] = [
  {
    name: "a request with room passes the oldest of its value, which waits for more",
    checker: {
      unseen:
        "It needs clients of one bucket that send the same keys, a wide request before a narrow one, and both polls open: too rare in the simulated fleets",
    },
    rule: { unseen: "No limit is broken: only the order of two requests is wrong" },
    plant: { engine: passingTheOldest },
  },
  {
    name: "requests at a key do not notice changes of its budget",
    checker: {
      unseen: "For clients, the request that blocks the host looks like one that waits for a budget of the host",
    },
    rule: /^V4/,
    plant: { engine: () => replaced("change", () => undefined) },
  },
  {
    name: "the oldest of a value does not step back when another class takes its room",
    checker: "HIST1",
    rule: /^V1 .* of (?:user|tenant) /,
    plant: { engine: stayingThrough },
  },
  {
    name: "the budget of a value is forgotten early",
    checker: "HIST14",
    rule: /^V12/,
    plant: forgettingBudgets(),
  },
  {
    name: "limits of single values are ignored",
    checker: "HIST1",
    rule: /^V1 .* of tenant /,
    plant: { config: (config) => withKeys(config, (key) => without(key, "for")) },
  },
  {
    name: "a required key is not required",
    checker: "HIST1",
    rule: /^V1 .*without the key/,
    plant: { config: (config) => withKeys(config, (key) => without(key, "required")) },
  },
  {
    name: "keys are passed from wide to narrow",
    checker: { unseen: "Clients only see that a request of another user waits longer" },
    rule: { unseen: "No limit is broken: a user at its limit holds back its tenant" },
    plant: { config: (config) => ({ ...config, ...(config.keys && { keys: reversed(config.keys) }) }) },
  },
  {
    name: "a key in shadow mode is enforced",
    checker: { unseen: "Clients only see that a request waits" },
    rule: /^V5/,
    plant: { config: (config) => withKeys(config, (key) => without(key, "shadow")) },
  },
  {
    name: "grants that find a key in shadow mode short are not counted",
    checker: { unseen: "Only the counts are wrong, which are metrics: the clients get their slots" },
    rule: { unseen: "Only the counts are wrong, which the simulator does not compare" },
    plant: { engine: () => replaced("shortOf", () => []) },
  },
];

function without(key: Keys[string], field: "for" | "required" | "shadow"): Keys[string] {
  return Object.fromEntries(Object.entries(key).filter(([name]) => name !== field));
}

function reversed(keys: Keys): Keys {
  return Object.fromEntries(Object.entries(keys).toReversed());
}

/** The store does not keep what a value of a key has spent. */
function forgettingBudgets(): Plant {
  return {
    store: (store) =>
      patched(store, {
        commit: (commit) => {
          const { changes } = commit;
          return store.commit({ ...commit, changes: { ...changes, puts: changes.puts.filter(isOfHost) } });
        },
        read: async (host) => store.read(host, undefined),
      }),
  };
}

function isOfHost({ kind, key }: BookRecord): boolean {
  return kind !== "budget" || !key.includes(" ");
}

/** Replaces a method of the ladder of keys. Returns what undoes it. */
function replaced<K extends "change" | "concerns" | "hold" | "shortOf">(name: K, by: Ladder[K]): () => void {
  const { [name]: original } = Ladder.prototype;
  Object.assign(Ladder.prototype, { [name]: by });
  return () => Object.assign(Ladder.prototype, { [name]: original });
}

/** A request that has passed a key does not notice that slots of its value are taken. */
function stayingThrough(): () => void {
  const { value: right } = Object.getOwnPropertyDescriptor(Ladder.prototype, "hold") as { value: Ladder["hold"] };
  return replaced("hold", function (this: Ladder, keys, by) {
    const through = by < 0 ? [] : [...this.lines].filter(({ passed, isDirty }) => passed !== undefined && !isDirty);
    // A line that waits to be brought up to date is not noted again.
    for (const line of through) line.isDirty = true;
    right.call(this, keys, by);
    for (const line of through) line.isDirty = false;
  });
}

/** A request stands at a key only if the key has no room for it when it comes. */
function passingTheOldest(): () => void {
  return replaced("concerns", function (this: Ladder, record) {
    return !this.admits(record as WaiterRecord, widthOf(record.demand));
  });
}
