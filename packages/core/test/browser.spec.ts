import { expect, test } from "vitest";
import { smokeInBrowser } from "./hosts.ts";
import { expected } from "./smoke.ts";

test("the main entry works in a real browser", async () => {
  expect(await smokeInBrowser("./smoke.ts")).toEqual(expected);
});
