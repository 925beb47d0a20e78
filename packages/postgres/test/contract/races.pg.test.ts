import { TestDatabase } from "@slotkeeper/testkit/postgres";
import type { Client } from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { DirectCaller } from "./direct-caller.ts";

const CONNECTIONS = 16;
const TRIES = 60;

const database = await TestDatabase.open();
afterAll(() => database.close());
const clients: Client[] = [];
for (let i = 0; i < CONNECTIONS; i++) clients.push(await database.connect());
const callers = clients.map((client) => new DirectCaller(client, true));
const onAll = (work: (caller: DirectCaller, no: number) => Promise<void>) => Promise.all(callers.map(work));

/** Slots that are held, as callers see it: from the answer with the slot until the call that releases it. */
class Holds {
  readonly #held = new Map<string, number>();
  readonly most = new Map<string, number>();

  take(...keys: string[]): void {
    for (const key of keys) {
      const now = (this.#held.get(key) ?? 0) + 1;
      this.#held.set(key, now);
      this.most.set(key, Math.max(now, this.most.get(key) ?? 0));
    }
  }

  giveBack(...keys: string[]): void {
    for (const key of keys) this.#held.set(key, (this.#held.get(key) ?? 0) - 1);
  }
}

describe("racing direct callers", () => {
  it("never hold more slots of a host or of a bucket than the limits allow, whichever functions they use", async () => {
    const holds = new Holds();
    let granted = 0;
    await onAll(async (caller, no) => {
      for (let i = 0; i < TRIES; i++) {
        const bucket = `b${(no + i) % 5}`;
        if (no % 2 === 0) {
          const { slot_token: token } = await caller.tryAcquire("race", bucket, { p_max_slot_per_host: 3 });
          if (token === null) continue;
          holds.take("host", bucket);
          await caller.count("upstream_slot_pool WHERE status = 'locked'").then((held) => expect(held).toBeLessThan(4));
          holds.giveBack("host", bucket);
          await caller.release(token);
        } else {
          const id = await caller.tryId("race", bucket, { slots: 3 });
          if (id <= 0) continue;
          holds.take("host", bucket);
          await caller.count("upstream_slot_pool WHERE status = 'locked'").then((held) => expect(held).toBeLessThan(4));
          holds.giveBack("host", bucket);
          await caller.releaseId(id);
        }
        granted++;
      }
    });
    expect(granted).toBeGreaterThan(50);
    for (const [key, most] of holds.most) expect([key, most <= (key === "host" ? 3 : 1)]).toEqual([key, true]);
    const [one] = callers as [DirectCaller];
    expect(await one.count("upstream_slot_pool WHERE status = 'locked'")).toBe(0);
    // How many are held at the same time depends on the machine. That all three can be held does not.
    const statuses = [];
    for (let no = 0; no < 4; no++) {
      statuses.push((await one.tryAcquire("race", `b${no}`, { p_max_slot_per_host: 3 })).status);
    }
    expect(statuses).toEqual(["ACQUIRED", "ACQUIRED", "ACQUIRED", "QUEUE_FULL"]);
  });

  it("never register more waiters than the limits allow", async () => {
    const caps = { p_max_waiters_per_ip: 2, p_max_waiters_per_host: 5 };
    let registered = 0;
    await onAll(async (caller, no) => {
      for (let i = 0; i < 20; i++) {
        const bucket = `b${(no + i) % 4}`;
        const answer = await caller.register("caps", bucket, caps);
        expect([answer.queue_depth <= 5, answer.ip_queue_depth <= 2]).toEqual([true, true]);
        if (answer.status !== "REGISTERED") continue;
        registered++;
        if (i % 2 === 0) await caller.unregister("caps", bucket);
      }
    });
    expect(registered).toBeGreaterThan(5);
    expect((await callers[0]?.register("caps", "b9", caps))?.status).toBe("HOST_QUEUE_FULL");
  });

  it("get one probe of a half-open host in total", async () => {
    const window = { p_throttle_time_window: 1 };
    for (let i = 0; i < 4; i++) await callers[0]?.report("half", true, window);
    await clients[0]?.query(`UPDATE "THROTTLE_PROTECTION" SET opened_at = opened_at - 1000`);
    const statuses: string[] = [];
    await onAll(async (caller, no) => {
      const more = { ...window, p_max_slot_per_host: 16 };
      statuses.push((await caller.tryAcquire("half", `b${no}`, more)).status);
    });
    expect(statuses.filter((status) => status === "ACQUIRED")).toHaveLength(1);
  });

  it("free a slot once, even if many release it at the same time", async () => {
    const caller = callers[0] as DirectCaller;
    for (let round = 0; round < 5; round++) {
      const token = await caller.acquire("once", "b", { p_max_slot_per_host: 1, p_zombie_timeout: 60 });
      await onAll((each) => each.release(token));
      const id = await caller.tryId("once", "b", { slots: 1 });
      await onAll((each) => each.releaseId(id));
    }
    expect(
      await caller.count(
        "upstream_slot_pool WHERE ends_at IS NOT NULL AND hostname_pattern = slotkeeper_host_key(NULL, 'once')",
      ),
    ).toBe(0);
    // One commit creates the host. Each round has two grants and two releases, however many callers tried.
    const { rows } = await (clients[0] as Client).query(
      "SELECT slotkeeper_number(tag)::int AS commits FROM slotkeeper_host WHERE host = slotkeeper_host_key(NULL, 'once')",
    );
    expect(rows).toEqual([{ commits: 1 + 5 * 4 }]);
  });
});
