// The rows of a host in the storage of its object, in real workerd.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startWorker } from "./worker.ts";

async function found(scenario: string, body?: unknown): Promise<unknown> {
  const script = `export { default, Rows } from "./rows-object.ts";`;
  const { ask } = await startWorker({ script, objects: { ROWS: "Rows" } });
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return (await ask(`/${scenario}`, init)).json();
}

test("a host with thousands of waiters is restored from rows of a limited size", async () => {
  const { isSame, rows } = (await found("big")) as { isSame: boolean; rows: number };
  expect(isSame).toBe(true);
  expect(rows).toBeLessThan(150);
});

test("the table does not grow with the number of commits", async () => {
  const { isSame, rows } = (await found("long")) as { isSame: boolean; rows: number };
  expect(isSame).toBe(true);
  expect(rows).toBeLessThanOrEqual(130);
});

test("waiters are written with the next row; before that, they are only in memory", async () => {
  expect(await found("deferred")).toEqual({ before: 1, after: 2, lost: false, isSame: true });
});

test("a write that fails has no effect, and may be repeated", async () => {
  expect(await found("failing")).toEqual({ failure: "disk full", unchanged: true, isOk: true, isSame: true });
});

test("storage of a later version is refused, with what to do", async () => {
  expect(await found("later")).toBe(
    "The storage of this object has schema 2, and this version of @slotkeeper/cloudflare reads 1. Nothing was changed. Deploy the version that wrote it, or a later one.",
  );
});

test("rows that the first version wrote are read", async () => {
  const recorded = readFileSync(new URL("recorded/schema-1.json", import.meta.url), "utf8");
  expect(await found("restore", JSON.parse(recorded))).toEqual({
    keys: ["key"],
    tag: "3.x",
    fence: 1_790_000_000_000_001,
    names: ["lease slot_0", "lease slot_1", "waiter session-0", "waiter session-1"],
  });
});
