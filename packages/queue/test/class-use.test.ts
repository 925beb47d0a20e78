import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { ClassUses } from "@slotkeeper/queue";
import type { Input } from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { arrive, Decider, release, START } from "./decider.ts";

/** `class-use.ts`: what classes have used, and what an order by a budget has charged them. */

const LONG_MS = 900_000;
const HOST = { maxSlotPerIp: -1, maxWaitersPerIp: -1, zombieTimeoutSeconds: 3_600, sessionIdleSeconds: 3_600 } as const;

function asked(session: string, name: string, ms: number) {
  return { ...arrive(session, session, ms, LONG_MS), demand: { class: name } };
}

function usesOf({ book }: Decider): ClassUses {
  if (book.head.classes === undefined) throw new Error("Expected the host to have classes");
  return book.head.classes;
}

/** How far each class is ahead of the meter, in slot time. */
function leadsOf(host: Decider): { readonly [name: string]: number } {
  const { progress } = host.book.head;
  const leads = Object.entries(usesOf(host)).map(([name, { usedMs, weight }]) => [name, usedMs - progress * weight]);
  return Object.fromEntries(leads) as { readonly [name: string]: number };
}

describe("a class whose weight is changed", () => {
  const weight = fc.constantFrom(0.5, 1, 2, 5);

  test("stays as far ahead of the meter as it was, or begins at zero (CUSE2)", () => {
    const weights = fc.record({ chat: weight, batch: weight, default: weight });
    const names = fc.array(fc.constantFrom("chat", "batch", "default"), { minLength: 6, maxLength: 9 });
    const times = fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 3, maxLength: 5 });
    fc.assert(
      fc.property(weights, weights, names, times, (first, second, classes, waits) => {
        const configOf = (given: typeof first) => {
          const { chat, batch, default: plain } = given;
          return { classes: { chat: { weight: chat }, batch: { weight: batch }, default: { weight: plain } } };
        };
        /** The host after a change of its limits, or without one. */
        const after = (change: FairQueueConfig) => {
          const host = new Decider({ ...HOST, maxSlotPerHost: 3, ...configOf(first) });
          const sessions = classes.map((_, at) => `s${at}`);
          const inputs = classes.map((name, at) => asked(`s${at}`, name, 0));
          host.at(0, inputs, sessions);
          let now = 0;
          for (const wait of waits) {
            now += wait;
            const [lease] = host.book.all("lease");
            if (lease !== undefined) host.at(now, [release(host.book, lease.session)], sessions);
          }
          host.at(now + 10, [], sessions, change);
          return host;
        };
        const [unchanged, changed] = [after({}), after(configOf(second))];
        const leads = leadsOf(unchanged);
        const { progress } = changed.book.head;
        expect(progress).toBeCloseTo(unchanged.book.head.progress, 6);
        for (const [name, { usedMs, weight }] of Object.entries(usesOf(changed))) {
          expect(weight).toBe(second[name as keyof typeof second]);
          const [before, lead] = [leads[name] ?? 0, usedMs - progress * weight];
          if (usedMs > 0) expect(lead, name).toBeCloseTo(before, 6);
          else expect(before, name).toBeLessThanOrEqual(lead + 1e-6);
        }
      }),
      { numRuns: 12 },
    );
  });
});

describe("classes that are switched on and off while sessions wait", () => {
  const CLASSES = { classes: { chat: { weight: 4 }, default: { weight: 2 } } };
  const PLAIN = { ...HOST, maxSlotPerHost: 1 };

  /** A host without classes that was used for a while: one session holds its slot, one waits. */
  function used(): Decider {
    const host = new Decider(PLAIN);
    host.at(0, [arrive("s1", "a", 0, LONG_MS), arrive("s2", "b", 0, LONG_MS)], ["s1", "s2"]);
    host.at(1_000, [release(host.book, "s1")], ["s1", "s2"]);
    return host;
  }

  test("start at the meter of the host, and the meters of their buckets at zero", () => {
    const host = used();
    const { progress } = host.book.head;
    expect(progress).toBeGreaterThan(0);
    host.at(1_500, [], ["s2"], CLASSES);
    const usedMs = 2 * (progress + 500);
    expect(usesOf(host)).toEqual({ default: { weight: 2, usedMs, progress: 0, activeAt: START + 1_500 } });
  });

  test("are off as soon as no session of a named class is left, although others wait", () => {
    const host = new Decider({ ...PLAIN, maxSlotPerHost: 2 });
    const off = { classes: {} };
    host.at(
      0,
      [asked("s1", "chat", 0), asked("s2", "default", 0), asked("s3", "chat", 0)],
      ["s1", "s2", "s3"],
      CLASSES,
    );
    host.at(500, [], [], off);
    expect(host.book.head.classes).toBeDefined();
    host.at(600, [release(host.book, "s1")], ["s3"], off);
    host.at(700, [asked("s4", "default", 700)], [], off);
    expect(host.book.head.classes).toBeDefined();
    host.at(800, [release(host.book, "s3")], [], off);
    host.at(900, [], [], off);
    expect(host.book.head.classes).toBeUndefined();
    expect(host.book.leaseOf("s2")).toBeDefined();
  });

  test("are on while a session of a class that was removed returns to the host", () => {
    const host = used();
    host.at(1_500, [{ ...asked("s3", "chat", 0), isReturning: true }], ["s3"]);
    expect(Object.keys(usesOf(host)).sort()).toEqual(["chat", "default"]);
    host.at(1_600, [release(host.book, "s2")], ["s3"]);
    expect(host.book.leaseOf("s3")).toBeDefined();
    host.at(1_700, [release(host.book, "s3")], []);
    host.at(1_800, [], []);
    expect(host.book.head.classes).toBeUndefined();
  });
});

test("a class with the name of a method of every object starts as any other", () => {
  const host = new Decider({ ...HOST, classes: { constructor: { weight: 2 } } });
  host.at(0, [asked("s1", "constructor", 0)], ["s1"]);
  host.at(100, [asked("s2", "default", 100)], ["s2"]);
  const start = { weight: 2, usedMs: 100, progress: 100, activeAt: START + 100 };
  expect(Object.entries(usesOf(host)).find(([name]) => name === "constructor")?.[1]).toEqual(start);
});

const NAMES = ["default", "chat", "batch"] as const;
type Name = (typeof NAMES)[number];

interface Step {
  readonly kind: "ask" | "release" | "reweigh";
  readonly name: Name;
  readonly bucket: string;
  readonly tokens: number;
}

/** An order by a budget as docs/explanation/fairness.md describes it, for classes of lines: each has a charge per weight. */
class Charges {
  readonly #weights: { [name in Name]: number };
  /** Per weight. Those of lines have the weight 1. */
  readonly #classes = new Map<string, number>();
  readonly #lines = new Map<string, number>();
  /** Where the last grants were made: of the host, and of each class. */
  #last = 0;
  readonly #lastIn = new Map<string, number>();
  waiting: Asked[] = [];
  held: Asked[] = [];

  constructor(weights: { [name in Name]: number }) {
    this.#weights = weights;
  }

  /** The charge per weight of each class stays. */
  reweigh(name: Name, weight: number): void {
    this.#weights[name] = weight;
  }

  ask(one: Asked): void {
    const { name, line } = one;
    const rest = this.waiting;
    if (!rest.some((other) => other.name === name)) {
      const start = rest.length === 0 ? this.#last : Math.min(...rest.map((other) => this.#ofClass(other.name)));
      this.#classes.set(name, Math.max(start, this.#ofClass(name)));
    }
    const inClass = rest.filter((other) => other.name === name);
    if (!inClass.some((other) => other.line === line)) {
      const lowest = Math.min(...inClass.map((other) => this.#ofLine(other.line)));
      const start = inClass.length === 0 ? (this.#lastIn.get(name) ?? 0) : lowest;
      this.#lines.set(line, Math.max(start, this.#ofLine(line)));
    }
    this.waiting = [...rest, one];
  }

  /** Grants the free slots, and returns the sessions. */
  grant(slots: number): string[] {
    const granted: string[] = [];
    while (this.held.length < slots && this.waiting.length > 0) {
      const [best] = this.waiting.toSorted((a, b) => this.#compare(a, b)) as [Asked];
      this.waiting = this.waiting.filter((one) => one !== best);
      this.held.push(best);
      granted.push(best.session);
      this.#last = this.#ofClass(best.name);
      this.#lastIn.set(best.name, this.#ofLine(best.line));
      this.#add(best, best.tokens);
    }
    return granted;
  }

  /** It really cost `used`. */
  settle(one: Asked, used: number): void {
    this.held = this.held.filter((other) => other !== one);
    this.#add(one, used - one.tokens);
  }

  #add({ name, line }: Asked, tokens: number): void {
    this.#classes.set(name, Math.max(0, this.#ofClass(name) + tokens / this.#weights[name]));
    this.#lines.set(line, Math.max(0, this.#ofLine(line) + tokens));
  }

  /** By class, then by line, then by age. Of equal classes, the one whose best line has the older head is first. */
  #compare(a: Asked, b: Asked): number {
    if (a.name === b.name) return this.#ofLine(a.line) - this.#ofLine(b.line) || a.at - b.at;
    return this.#ofClass(a.name) - this.#ofClass(b.name) || this.#headOf(a.name) - this.#headOf(b.name);
  }

  /** When the first waiter of the best line of a class came. */
  #headOf(name: Name): number {
    const [best] = this.waiting.filter((one) => one.name === name).toSorted((a, b) => this.#compare(a, b)) as [Asked];
    return best.at;
  }

  #ofClass(name: string): number {
    return this.#classes.get(name) ?? 0;
  }

  #ofLine(line: string): number {
    return this.#lines.get(line) ?? 0;
  }
}

interface Asked {
  readonly session: string;
  readonly name: Name;
  readonly line: string;
  readonly tokens: number;
  readonly at: number;
}

describe("by a budget", () => {
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom<Step["kind"][]>("ask", "ask", "release", "release", "reweigh"),
    name: fc.constantFrom(...NAMES),
    bucket: fc.constantFrom("a", "b"),
    tokens: fc.constantFrom(1, 2, 7, 32, 64),
  });

  const configOf = (weights: { [name in Name]: number }, isWithClasses: boolean): FairQueueConfig => {
    const { default: plain, chat, batch } = weights;
    const classes = { default: { weight: plain }, chat: { weight: chat }, batch: { weight: batch } };
    const budgets = { tokens: { limit: 1e9, perSeconds: 1 } };
    return { ...HOST, order: "budget:tokens", budgets, ...(isWithClasses ? { classes } : {}) };
  };

  test.each([true, false])(
    "each slot goes to the class and the bucket that were charged least per weight, with classes: %s",
    (isWithClasses) => {
      fc.assert(
        fc.property(
          fc.array(step, { minLength: 40, maxLength: 60 }),
          fc.integer({ min: 1, max: 2 }),
          (steps, slots) => {
            const weights = { default: 1, chat: 4, batch: 0.5 };
            const charges = new Charges(weights);
            let config = configOf(weights, isWithClasses);
            const host = new Decider({ ...config, maxSlotPerHost: slots });
            const sessions = steps.map((_, at) => `s${at}`);
            steps.forEach(({ kind, name: given, bucket, tokens }, at) => {
              const name = isWithClasses ? given : "default";
              const inputs: Input[] = [];
              const [oldest] = charges.held;
              if (kind === "ask") {
                const line = `${name}/${bucket}`;
                charges.ask({ session: `s${at}`, name, line, tokens, at });
                const demand = { cost: { tokens }, ...(isWithClasses ? { class: name } : {}) };
                inputs.push({ ...arrive(`s${at}`, bucket, at, LONG_MS), demand });
              } else if (kind === "reweigh") {
                // Powers of two: no charge is rounded, so equal charges are equal here, too.
                charges.reweigh(name, tokens === 7 ? 0.5 : tokens / 8);
                config = configOf(weights, isWithClasses);
              } else if (oldest !== undefined) {
                charges.settle(oldest, tokens);
                const slotToken = host.book.leaseOf(oldest.session)?.key ?? "";
                inputs.push({ kind: "release", slotToken, hitAt: undefined, status: undefined, used: { tokens } });
              }
              const { notes } = host.at(at, inputs, sessions, config);
              const granted = notes.flatMap((note) => (note.kind === "granted" ? [note.session] : []));
              expect(granted).toEqual(charges.grant(slots));
              if (host.book.limits !== undefined) expect(host.book.head.classes !== undefined).toBe(isWithClasses);
            });
          },
        ),
        { numRuns: 15 },
      );
    },
  );
});
