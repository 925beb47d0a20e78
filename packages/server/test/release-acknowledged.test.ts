import { type Commit, type CommitReply, MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { expect, test } from "vitest";
import { openWith, startFixture } from "./service-fixture.ts";

/** A store of a fleet whose commits wait for `commitAfter`. */
class SlowStore extends MemoryStore {
  commitAfter: () => Promise<void> = () => Promise.resolve();

  constructor() {
    super({ clock: realClock, isShared: true });
  }

  override async commit(commit: Commit): Promise<CommitReply> {
    await this.commitAfter();
    return super.commit(commit);
  }
}

/** A service that holds a slot, in a fleet of two. */
async function holding() {
  const store = new SlowStore();
  await store.beat({ instance: "other", ttlMs: 600_000, about: {}, hosts: [] });
  const fixture = await startFixture({ open: openWith(() => store) });
  const { slotToken } = await fixture.take();
  return { store, fixture, slotToken };
}

test("in a fleet a release is acknowledged when the store has it, so that a dying instance loses none", async () => {
  const { store, fixture, slotToken } = await holding();
  const order: string[] = [];
  store.commitAfter = async () => {
    // Less than the longest time for which an acknowledgement waits.
    await new Promise((resolve) => setTimeout(resolve, 40));
    order.push("committed");
  };
  await fixture.release(slotToken);
  expect([...order, "acknowledged"]).toEqual(["committed", "acknowledged"]);
});

test("a store that does not answer delays the answer to a release only for a moment", async () => {
  const { store, fixture, slotToken } = await holding();
  let letThrough = () => {};
  const held = new Promise<void>((resolve) => (letThrough = resolve));
  store.commitAfter = () => held;
  expect((await fixture.release(slotToken)).body.result).toBe("ok");
  letThrough();
  await expect.poll(async () => (await fixture.call("renew", { slotToken })).status).toBe(410);
});
