/**
 * The common part of W3, W4, W4s and W6: one slot, held, and a queue of waiters behind it. A library with `acquire`
 * uses it; a library that only has `run` waits with work that does nothing.
 */
import { Random } from "@slotkeeper/testkit/random";
import { type Gate, gateWith, type Subject, type Work } from "../subject.ts";

export interface HeldGate {
  /** Queues one waiter that releases its slot as soon as it gets it. */
  wait: () => Promise<unknown>;
  waitUnlessAborted: (signal: AbortSignal) => Promise<unknown>;
  waitWithin: (timeoutMs: number) => Promise<unknown>;
  /** The waiter's part of the hand-over: handles the value of `wait`. */
  passOn: (handle: unknown) => unknown;
  /** Lets the first waiter in. */
  open: () => unknown;
}

const settled = Promise.resolve();
const nothing: Work = () => settled;
const keep = (): void => {};

const need = <T>(operation: T | undefined): T => {
  if (operation === undefined) throw new TypeError("The subject lacks what the case needs and does not say so.");
  return operation;
};

/** Uses `acquire` if there is one, otherwise `run`. */
export async function heldGate(subject: Subject): Promise<HeldGate> {
  if (subject.lacks.acquire !== undefined) return heldByRun(gateWith(subject, 1, "run"));
  const gate: Gate = gateWith(subject, 1, "acquire", "release");
  const acquire = need(gate.acquire);
  const release = need(gate.release) as (handle: unknown) => unknown;
  const holder = await acquire();
  return {
    wait: acquire,
    waitUnlessAborted: (signal) => need(gate.acquireUnlessAborted)(signal),
    waitWithin: (timeoutMs) => need(gate.acquireWithin)(timeoutMs),
    passOn: release,
    open: () => release(holder),
  };
}

async function heldByRun(gate: Gate): Promise<HeldGate> {
  const run = need(gate.run);
  let open: () => void = keep;
  await new Promise<void>((isRunning) => {
    void run(() => {
      isRunning();
      return new Promise<void>((resolve) => (open = resolve));
    });
  });
  return {
    wait: () => run(nothing) as Promise<unknown>,
    waitUnlessAborted: (signal) => need(gate.runUnlessAborted)(signal, nothing),
    waitWithin: (timeoutMs) => need(gate.runWithin)(timeoutMs, nothing),
    passOn: keep,
    open: () => open(),
  };
}

/** Resolves when `expected` waiters have ended as expected; rejects if one ends differently. */
export class Tally {
  readonly done: Promise<void>;
  readonly count: (value?: unknown) => void;
  readonly refuse: (value?: unknown) => void;

  constructor(expected: number, passOn: (handle: unknown) => unknown) {
    let left = expected;
    let finish: () => void = keep;
    let fail: (error: Error) => void = keep;
    this.done = new Promise((resolve, reject) => {
      finish = resolve;
      fail = reject;
    });
    this.count = (value) => {
      passOn(value);
      left -= 1;
      if (left === 0) finish();
    };
    this.refuse = () =>
      fail(new Error("A waiter ended the wrong way: granted where it had to give up, or the reverse."));
  }
}

export const ignore: (handle: unknown) => unknown = keep;

/** 0..count-1 in an order that is the same in every process. */
export function shuffled(count: number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  const random = new Random(42);
  for (let i = count - 1; i > 0; i--) {
    const j = random.int(0, i);
    const kept = order[i] as number;
    order[i] = order[j] as number;
    order[j] = kept;
  }
  return order;
}

export const thousands = (count: number): string => count.toLocaleString("en-US");

/** Why a row has no peers. */
export const GROWTH_ONLY = "peers: at 100,000 only; this row shows growth";
