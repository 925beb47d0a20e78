import { MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { describe, expect, it } from "vitest";
import { newFolder, openWith, startFixture, stopFixture } from "./service-fixture.ts";

const FOREIGN = "slot_nowhere.0123456789abcdefghijkl";

describe("the answer to a release", () => {
  it("says that a token holds no slot: one that is not ours, of an unknown host, of another slot, or released before", async () => {
    const fixture = await startFixture();
    const { slotToken } = await fixture.take();
    const invented = slotToken.replace(/\.[^.]+$/, ".0123456789abcdefghijkl");
    for (const token of ["nonsense", "", "slot_", FOREIGN, invented]) {
      expect([token, (await fixture.release(token)).text]).toEqual([token, '{"result":"ok","released":false}']);
    }
    expect((await fixture.release(slotToken)).text).toBe('{"result":"ok"}');
    expect((await fixture.release(slotToken)).text).toBe('{"result":"ok","released":false}');
  });

  it("says so of a slot that has expired", async () => {
    const fairQueue = { maxSlotPerHost: 1, zombieTimeoutSeconds: 0.5, collectMs: 1 };
    const fixture = await startFixture({ config: { fairQueue } });
    const { slotToken } = await fixture.take({ bucket: "a" });
    // Answered when the first slot expires.
    await fixture.acquire({ bucket: "b", waitMs: 5_000 });
    expect((await fixture.release(slotToken)).text).toBe('{"result":"ok","released":false}');
  });

  it.each([
    [{ tokens: 1 }, {}],
    [{ tokens: -1, "a b": 1 }, { ignored: ["used.tokens", 'used["a b"]'] }],
    [{ tokens: null }, {}],
    ["all", { ignored: ["used"] }],
  ])("names what is ignored in `used`: %j", async (used, more) => {
    const fairQueue = { budgets: { tokens: { limit: 10, perSeconds: 60 } } };
    const fixture = await startFixture({ config: { fairQueue } });
    const { slotToken } = await fixture.take();
    expect((await fixture.release(slotToken, { used })).body).toEqual({ result: "ok", ...more });
    expect((await fixture.release(slotToken, { used })).body).toMatchObject({ result: "ok", released: false });
  });

  it("knows the slots of the journal after a restart", async () => {
    const journal = `${newFolder()}/slots.journal`;
    const config = { backend: { memory: { journal } } };
    const before = await startFixture({ config });
    const { slotToken } = await before.take();
    await stopFixture(before);
    const after = await startFixture({ config });
    expect((await after.release(slotToken)).text).toBe('{"result":"ok"}');
    expect((await after.release(slotToken)).text).toBe('{"result":"ok","released":false}');
    expect((await after.release(FOREIGN)).text).toBe('{"result":"ok","released":false}');
  });

  it("does not say so of a shared store, which alone knows, unless the token is not ours", async () => {
    const fixture = await startFixture({ open: openWith(() => new MemoryStore({ clock: realClock, isShared: true })) });
    expect((await fixture.release(FOREIGN)).text).toBe('{"result":"ok"}');
    expect((await fixture.release("nonsense")).text).toBe('{"result":"ok","released":false}');
  });
});
