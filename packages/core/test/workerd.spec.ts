import { expect, test } from "vitest";
import { smokeInWorkerd } from "./hosts.ts";
import { expected } from "./smoke.ts";

test("the main entry works in real workerd", async () => {
  expect(await smokeInWorkerd("./smoke.ts")).toEqual(expected);
});
