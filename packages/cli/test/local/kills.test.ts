// Short runs of `npm run bench:local`: processes are killed at random moments, and the log of the commands is judged.
import { killExecs, killHolders, killKeepers, type Machine } from "@slotkeeper/testkit/one-machine";
import { describe, expect, test } from "vitest";

const kills = process.env["SLOTKEEPER_LONG"] ? 300 : 12;

/** The keeper ends when it has been idle, and leaves nothing. */
const noFiles = async (machine: Machine) => {
  await machine.until(() => (machine.files().length === 0 ? true : undefined), "the end of the keeper");
};

describe("never more commands than slots", { timeout: kills * 20_000 }, () => {
  test("when holders are killed with all their processes; the keeper leaves no file", async () => {
    expect(await killHolders({ kills, seed: 1, after: noFiles })).toMatchObject({ kills, over: 0 });
  });

  test("when only exec is killed: its command, work in the background and closed descriptors keep the slot", async () => {
    expect(await killExecs({ kills, seed: 2 })).toMatchObject({ kills, over: 0 });
  });

  test("when the keeper is killed, while commands hold and wait; no waiter is lost, and no file is left", async () => {
    expect(await killKeepers({ kills, seed: 3, after: noFiles })).toMatchObject({ kills, over: 0, lost: 0 });
  });
});
