import { expect, test } from "vitest";
import { freePort, runGuide, unprinted } from "./run-guide.ts";

test("tenants-and-classes.md: every command of the guide works and prints what the guide shows", async () => {
  const run = await runGuide("tenants-and-classes.md", new Map([[":8080", `:${await freePort()}`]]));
  expect(run.code, run.err).toBe(0);
  expect(unprinted(run)).toEqual([]);
});
