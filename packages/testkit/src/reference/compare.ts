import { isDeepStrictEqual } from "node:util";
import { type Host, referenceHost } from "./engine-host.ts";
import type { History } from "./random-history.ts";
import { type Changed, Side } from "./side.ts";

/** The first step at which the two hosts differ. */
export interface Difference {
  readonly step: number;
  readonly what: string;
  readonly expected: string;
  readonly got: string;
}

/** Gives the history to the engine and to the reference, and compares them after every step. */
export async function compareHistory(
  history: History,
  engine: Host,
  changed: Changed = {},
): Promise<Difference | undefined> {
  const [right, tried] = [new Side(history, referenceHost()), new Side(history, engine, changed)];
  for (const [at, step] of history.steps.entries()) {
    const expected = await right.decide(step);
    let got: object;
    try {
      got = await tried.decide(step);
    } catch (error) {
      return { step: at, what: "decisions", expected: JSON.stringify(expected), got: String(error) };
    }
    for (const [what, one] of Object.entries(expected)) {
      const other = (got as Record<string, unknown>)[what];
      if (!isDeepStrictEqual(one, other))
        return { step: at, what, expected: JSON.stringify(one), got: JSON.stringify(other) };
    }
  }
  return undefined;
}

/** Leaves out steps and inputs as long as the hosts still differ. */
export async function shrinkHistory(
  history: History,
  differs: (shorter: History) => Promise<boolean>,
): Promise<History> {
  let shortest = history;
  for (let isShorter = true; isShorter; ) {
    isShorter = false;
    for (const shorter of shorterOnes(shortest)) {
      if (!(await differs(shorter))) continue;
      shortest = shorter;
      isShorter = true;
      break;
    }
  }
  return shortest;
}

function* shorterOnes(history: History): Generator<History> {
  const { steps } = history;
  for (let length = steps.length >> 1; length >= 1; length >>= 1) {
    for (let at = steps.length - length; at >= 0; at -= length)
      yield { ...history, steps: steps.toSpliced(at, length) };
  }
  for (const [at, step] of steps.entries()) {
    for (const [index] of step.asks.entries()) {
      yield { ...history, steps: steps.with(at, { ...step, asks: step.asks.toSpliced(index, 1) }) };
    }
  }
}

/** One line for each step. */
export function formatHistory({ configs, steps }: History): string {
  const lines = steps.map(({ asks, ...step }, at) => {
    const shown = asks.map(
      ({ kind, session, bucket, number, isOdd }) => `${kind} ${session}/${bucket} ${number}${isOdd ? " odd" : ""}`,
    );
    return `${at}: ${JSON.stringify(step)}\n   ${shown.join("; ")}`;
  });
  return [JSON.stringify(configs[0]), ...lines].join("\n");
}
