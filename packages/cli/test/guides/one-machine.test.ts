import { expect, test } from "vitest";
import { newMachine } from "../local/machine.ts";
import { runGuide, unprinted } from "./run-guide.ts";

test("one machine: every recipe of the guide works and prints what the guide shows", async () => {
  const machine = newMachine();
  const run = await runGuide("one-machine.md", new Map(), { SLOTKEEPER_SOCKET: machine.socket });
  expect(run.code, run.err).toBe(0);
  expect(unprinted(run)).toEqual([]);
});
