import { importedFiles } from "@slotkeeper/testkit/bundle";
import { describe, expect, test } from "vitest";
import { smokeInBrowser, smokeInWorkerd } from "../hosts.ts";
import { expected, smoke } from "./smoke.ts";

/** The files of the library that an entry is made of. */
async function filesOf(entry: string): Promise<string[]> {
  return Object.keys(await importedFiles(`export * from "${entry}";`, import.meta.dirname));
}

describe("the limiter's entry", () => {
  test("bundles for no platform in particular, and is no part of the main entry", async () => {
    const isLimiter = (file: string) => file.includes("src/limiter/");
    expect((await filesOf("slotkeeper/limiter")).filter(isLimiter).length).toBeGreaterThan(10);
    expect((await filesOf("slotkeeper")).filter(isLimiter)).toEqual([]);
  });

  test("works in Node", async () => {
    expect(await smoke()).toEqual(expected);
  });

  test("works in real workerd", async () => {
    expect(await smokeInWorkerd("./limiter/smoke.ts")).toEqual(expected);
  });

  test("works in a real browser", async () => {
    expect(await smokeInBrowser("./limiter/smoke.ts")).toEqual(expected);
  });
});
