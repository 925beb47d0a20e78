import { expect, test } from "vitest";
import { freePort, runGuide, unprinted } from "./run-guide.ts";

test.each(["token-budgets.md", "shadow.md"])(
  "%s: every command of the guide works and prints what the guide shows",
  async (name) => {
    const run = await runGuide(name, new Map([[":8080", `:${await freePort()}`]]));
    expect(run.code, run.err).toBe(0);
    expect(unprinted(run)).toEqual([]);
  },
  120_000,
);
