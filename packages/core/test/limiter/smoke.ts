/** What the limiter must do on every host, in real time. It runs inside a browser and inside `workerd`. */
import { isSlotkeeperError } from "slotkeeper";
import { Limiter, stream } from "slotkeeper/limiter";

/** What was seen, by name; the specs compare it with `expected`. */
export async function smoke(): Promise<Record<string, unknown>> {
  return { budget: await budget(), timeout: await timeout(), keys: await keys(), stream: await streamed() };
}

export const expected: Record<string, unknown> = {
  budget: [0, 1, 2],
  timeout: "ACQUIRE_TIMEOUT",
  keys: [true, false, true],
  stream: [2, 4, 6],
};

async function budget(): Promise<number[]> {
  const limiter = new Limiter({ slots: 2, budgets: { requests: { limit: 1, perMs: 5 } } });
  return limiter.map([0, 1, 2], (item) => item);
}

async function timeout(): Promise<unknown> {
  const limiter = new Limiter({ budgets: { requests: { limit: 1, perMs: 60_000 } } });
  (await limiter.acquire()).release();
  return limiter.acquire({ timeoutMs: 5 }).then(
    () => "granted",
    (error: unknown) => (isSlotkeeperError(error) ? error.code : error),
  );
}

async function keys(): Promise<boolean[]> {
  const limiter = new Limiter({ slots: 2, perKey: { slots: 1 } });
  return ["a", "a", "b"].map((key) => limiter.tryAcquire({ key }) !== undefined);
}

async function streamed(): Promise<number[]> {
  const results: number[] = [];
  for await (const one of stream(new Limiter({ slots: 2 }), [1, 2, 3], (item) => item * 2)) results.push(one);
  return results;
}
