import { readFileSync } from "node:fs";
import { bundle } from "@slotkeeper/testkit/bundle";
import * as slotkeeper from "slotkeeper";
import {
  type AcquireTimeoutError,
  type CapacityMismatchError,
  type ClosedError,
  isSlotkeeperError,
  type QueueFullError,
  Semaphore,
  SemaphoreRegistry,
  type SlotExpiredError,
  SlotkeeperError,
} from "slotkeeper";
import { FakeClock } from "slotkeeper/testing";
import { describe, expect, test } from "vitest";

/** One error of each class, produced by real calls. */
async function outcomes(name: string | undefined): Promise<unknown[]> {
  const clock = new FakeClock();
  const registry = new SemaphoreRegistry({ clock });
  const sem = new Semaphore(1, { name, registry, clock, ttlMs: 100, abortOnExpiry: true, maxWaiters: 1 });
  const { signal } = await sem.acquire();
  const waiter = sem.acquire({ timeoutMs: 50 }).catch((error: unknown) => error);
  const full = await sem.acquire().catch((error: unknown) => error);
  clock.advance(50);
  const timeout = await waiter;
  const mismatch: unknown[] = [];
  try {
    if (name !== undefined) new Semaphore(2, { name, registry }).close();
  } catch (error) {
    mismatch.push(error);
  }
  clock.advance(50);
  sem.close(new Error("going down"));
  const closed = await sem.acquire().catch((error: unknown) => error);
  return [timeout, closed, full, signal.reason, ...mismatch];
}

const samples = (await outcomes("db")) as (
  | AcquireTimeoutError
  | ClosedError
  | QueueFullError
  | SlotExpiredError
  | CapacityMismatchError
)[];

/** Rows of the table in the reference: code, class, retryable, fields. */
function documented() {
  const page = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");
  const section = page.split("\n## ").find((text) => text.startsWith("Errors of the library")) as string;
  return section
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, code = "", name = "", retryable = "", fields = "", meaning = ""]) => ({
      code: code.replaceAll("`", ""),
      name: name.replaceAll("`", ""),
      retryable: retryable === "yes",
      fields: [...fields.matchAll(/`(\w+)`/g)].map(([, field]) => field ?? "").sort(),
      meaning,
    }));
}

function exported() {
  return Object.values(slotkeeper).filter(
    (value): value is typeof slotkeeper.ClosedError =>
      typeof value === "function" && value.prototype instanceof SlotkeeperError,
  );
}

describe("the error table", () => {
  test("every exported error class is in the reference, and every row of the reference is an exported class", () => {
    expect(
      documented()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(
      exported()
        .map(({ name }) => name)
        .sort(),
    );
    expect(new Set<unknown>(samples.map((sample) => sample.constructor))).toEqual(new Set(exported()));
  });

  test("code, retryable and fields are exactly those of the reference", () => {
    const actual = samples.map((sample) => ({
      code: sample.code,
      name: sample.name,
      retryable: sample.retryable,
      fields: Object.getOwnPropertyNames(sample)
        .filter((field) => !["message", "stack", "name", "code", "retryable"].includes(field))
        .filter((field) => field !== "cause" || sample.cause !== undefined)
        .sort(),
    }));
    expect(documented()).toMatchObject(actual);
    expect(documented()).toHaveLength(actual.length);
  });

  test("every row has an explanation", () => {
    for (const { code, meaning } of documented()) expect(meaning.length, code).toBeGreaterThan(20);
  });
});

describe("errors", () => {
  test.each(samples)("$name is an Error and a SlotkeeperError with a message that names the semaphore", (sample) => {
    expect(sample).toBeInstanceOf(Error);
    expect(sample).toBeInstanceOf(SlotkeeperError);
    expect(isSlotkeeperError(sample)).toBe(true);
    expect(sample.stack).toContain(sample.message);
    expect(String(sample)).toBe(`${sample.name}: ${sample.message}`);
    expect(sample.message).toContain('"db"');
  });

  test("codes are unique", () => {
    expect(new Set(samples.map(({ code }) => code)).size).toBe(samples.length);
  });

  test('messages about a semaphore without a name do not contain "undefined"', async () => {
    const errors = (await outcomes(undefined)) as Error[];
    expect(errors).toHaveLength(4);
    for (const { message } of errors) expect(message).not.toContain("undefined");
  });

  test("the fields describe what happened", () => {
    expect(samples).toMatchObject([
      { semaphore: "db", waitedMs: 50, waiting: 0 },
      { semaphore: "db", cause: new Error("going down") },
      { semaphore: "db", waiting: 1 },
      { semaphore: "db", heldMs: 100 },
      { semaphore: "db", capacity: 1, requested: 2 },
    ]);
  });

  test("isSlotkeeperError is false for everything else", () => {
    const others = [undefined, null, 0, "", "CLOSED", {}, { code: "CLOSED" }, new Error("x"), new RangeError("x")];
    for (const other of others) expect(isSlotkeeperError(other)).toBe(false);
  });

  test("isSlotkeeperError works across two copies of the package", async () => {
    const source = await bundle(`export * from "slotkeeper";`, import.meta.dirname);
    const url = `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`;
    const copy = (await import(/* @vite-ignore */ url)) as typeof slotkeeper;
    expect(copy.SlotkeeperError).not.toBe(SlotkeeperError);
    const closed = new copy.Semaphore(1);
    closed.close();
    const foreign: unknown = await closed.acquire().catch((error: unknown) => error);
    expect([foreign instanceof SlotkeeperError, isSlotkeeperError(foreign)]).toEqual([false, true]);
    expect(copy.isSlotkeeperError(samples[0])).toBe(true);
  });
});
