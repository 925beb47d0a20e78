import { readFileSync } from "node:fs";
import * as slotkeeper from "slotkeeper";
import {
  AcquireTimeoutError,
  CapacityMismatchError,
  ClosedError,
  isSlotkeeperError,
  QueueFullError,
  SlotExpiredError,
  SlotkeeperError,
} from "slotkeeper";
import { describe, expect, test } from "vitest";
import { bundle } from "./bundle.ts";

const samples = [
  new AcquireTimeoutError("db", 1_234.5, 3),
  new ClosedError("db", "going down"),
  new QueueFullError("db", 7),
  new SlotExpiredError("db", 500),
  new CapacityMismatchError("db", 2, 3),
];

/** Rows of the table in the reference: code, class, retryable, fields. */
function documented() {
  const page = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");
  return page
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
    (value): value is typeof AcquireTimeoutError =>
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
    expect(samples.map((sample) => sample.constructor).sort()).toEqual(exported().sort());
  });

  test("code, retryable and fields are as the reference says, neither more nor fewer", () => {
    const actual = samples.map((sample) => ({
      code: sample.code,
      name: sample.name,
      retryable: sample.retryable,
      fields: Object.getOwnPropertyNames(sample)
        .filter((field) => !["message", "stack", "name", "code", "retryable"].includes(field))
        .sort(),
    }));
    expect(actual).toEqual(documented().map(({ meaning: _, ...row }) => row));
  });

  test("every row says what it means", () => {
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
    if (!(sample instanceof ClosedError)) expect(sample.message).toContain('"db"');
  });

  test("codes are unique", () => {
    expect(new Set(samples.map(({ code }) => code)).size).toBe(samples.length);
  });

  test("the message of an error without a name does not speak of undefined", () => {
    const errors = [
      new AcquireTimeoutError(undefined, 5, 0),
      new ClosedError(undefined),
      new QueueFullError(undefined, 0),
      new SlotExpiredError(undefined, 5),
    ];
    for (const { message } of errors) expect(message).not.toContain("undefined");
  });

  test("isSlotkeeperError is false for everything else", () => {
    const others = [undefined, null, 0, "", "CLOSED", {}, { code: "CLOSED" }, new Error("x"), new RangeError("x")];
    for (const other of others) expect(isSlotkeeperError(other)).toBe(false);
  });

  test("isSlotkeeperError works across two copies of the package", async () => {
    const source = await bundle(`export * from "slotkeeper";`);
    const url = `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`;
    const copy = (await import(/* @vite-ignore */ url)) as typeof slotkeeper;
    expect(copy.SlotkeeperError).not.toBe(SlotkeeperError);
    const foreign = new copy.QueueFullError("db", 1);
    expect([foreign instanceof SlotkeeperError, isSlotkeeperError(foreign)]).toEqual([false, true]);
    expect(copy.isSlotkeeperError(samples[0])).toBe(true);
  });
});
