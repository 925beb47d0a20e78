// The middleware in the real frameworks, with slots of the real service and of one process.
import { UnavailableError } from "@slotkeeper/client";
import { perTenant } from "@slotkeeper/client/express";
import { SlotPool } from "slotkeeper";
import { describe, expect, test } from "vitest";
import { startWorld, type World } from "./fixture.ts";
import { APPS, type App, type StartApp } from "./middleware-apps.ts";

interface Left {
  readonly slots: number;
  readonly sessions: number;
}

/** Two slots for each tenant, and how many are held and waited for. */
const GATES = {
  service: async () => {
    const world = await startWorld();
    return { options: { gate: world.client(), slots: 2 } as const, left: (): Promise<Left> => world.left() };
  },
  "one process": async () => {
    const gate = new SlotPool({ max: 100, maxPerKey: 2 });
    const left = async (): Promise<Left> => ({ slots: gate.stats().inUse, sessions: gate.stats().waiting });
    return { options: { gate } as const, left };
  },
} as const;

/** Work that ends when the test says so. */
class Work {
  running = 0;
  #ends: (() => void)[] = [];

  readonly start = async (): Promise<void> => {
    this.running++;
    await new Promise<void>((resolve) => this.#ends.push(resolve));
    this.running--;
  };

  endAll(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}

/** The status, after the whole response has been read, as a server does for its caller. */
async function statusOf(response: Promise<Response>): Promise<number> {
  await (await response).text();
  return (await response).status;
}

const cases = Object.entries(APPS).flatMap(([framework, start]) =>
  Object.entries(GATES).map(([kind, gate]) => ({ framework, kind, start, gate })),
);

describe.each(cases)("$framework with slots of the $kind", ({ start, gate }) => {
  async function run(test: (app: App, work: Work, until: (left: Left) => Promise<void>) => Promise<void>, more = {}) {
    const { options, left } = await gate();
    const work = new Work();
    const app = await start({ ...options, ...more }, work.start);
    const until = (expected: Left) => expect.poll(left, { timeout: 20_000 }).toEqual(expected);
    try {
      await test(app, work, until);
      work.endAll();
      await until({ slots: 0, sessions: 0 });
    } finally {
      work.endAll();
      await app.close();
    }
  }

  test("two requests of a tenant run at a time, and other tenants do not wait for them", () =>
    run(async ({ ask }, work, until) => {
      const ann = ["/", "/", "/"].map((path) => statusOf(ask(path, "ann")));
      await until({ slots: 2, sessions: 1 });
      const bob = statusOf(ask("/", "bob"));
      await until({ slots: 3, sessions: 1 });
      expect(work.running).toBe(3);
      work.endAll();
      await until({ slots: 1, sessions: 0 });
      await expect.poll(() => work.running).toBe(1);
      work.endAll();
      expect(await Promise.all([...ann, bob])).toEqual([200, 200, 200, 200]);
    }));

  test("the slot is held until the body of the response has ended", () =>
    run(async ({ ask }, work, until) => {
      const response = await ask("/stream", "ann");
      const text = response.text();
      await until({ slots: 1, sessions: 0 });
      await expect.poll(() => work.running).toBe(1);
      work.endAll();
      expect(await text).toBe("first last");
    }));

  test("a caller that disconnects leaves the queue, or gives its slot back", () =>
    run(async ({ ask }, _, until) => {
      const [holder, waiter] = [new AbortController(), new AbortController()];
      const held = [await ask("/stream", "ann", holder.signal), await ask("/stream", "ann")];
      const waiting = ask("/", "ann", waiter.signal).catch(() => "gone");
      await until({ slots: 2, sessions: 1 });
      waiter.abort();
      await waiting;
      await until({ slots: 2, sessions: 0 });
      holder.abort();
      await until({ slots: 1, sessions: 0 });
      await held[1]?.body?.cancel();
    }));

  test("a tenant that uses all of its slots gets 429 with Retry-After", async () => {
    const errors: unknown[] = [];
    const onRefused = (error: unknown) => errors.push(error);
    await run(
      async ({ ask }, work, until) => {
        const held = [statusOf(ask("/", "ann")), statusOf(ask("/", "ann"))];
        await until({ slots: 2, sessions: 0 });
        const response = await ask("/", "ann");
        expect([response.status, response.headers.get("retry-after")]).toEqual([429, "1"]);
        expect(await response.json()).toEqual({ error: "Too many requests at a time" });
        expect(errors).toMatchObject([{ code: "ACQUIRE_TIMEOUT" }]);
        work.endAll();
        expect(await Promise.all(held)).toEqual([200, 200]);
      },
      { timeoutMs: 300, onRefused },
    );
  });

  test("a request without a tenant needs no slot", () =>
    run(async ({ ask }, work, until) => {
      const response = ask("/");
      await expect.poll(() => work.running).toBe(1);
      await until({ slots: 0, sessions: 0 });
      work.endAll();
      expect((await response).status).toBe(200);
    }));
});

describe.each(Object.entries(APPS))("%s", (_, start: StartApp) => {
  const done = async () => {};

  async function away(world: World): Promise<{ app: App; errors: unknown[] }> {
    const errors: unknown[] = [];
    const onRefused = (error: unknown) => void errors.push(error);
    const app = await start({ gate: world.client({ maxAttempts: 2 }), slots: 2, timeoutMs: 1_000, onRefused }, done);
    return { app, errors };
  }

  test("a service that is away is a 503 that does not show its address", async () => {
    const world = await startWorld();
    const { app, errors } = await away(world);
    await world.proxy.refuse();
    const response = await app.ask("/", "ann");
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await response.json()).toEqual({ error: "No slot is available" });
    expect(errors[0]).toBeInstanceOf(UnavailableError);
    await app.close();
  });

  test("the Retry-After of a busy service is passed on", async () => {
    const world = await startWorld();
    const { app } = await away(world);
    world.proxy.fault = { status: 503, headers: { "retry-after": "7" } };
    const response = await app.ask("/", "ann");
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "7"]);
    await app.close();
  });

  test("a gate of one's own fits by its shape, and an error that no retry solves is a 500", async () => {
    let left = 1;
    const gate = {
      acquire: async () => {
        if (left-- === 0) throw new Error("the database is gone");
        return { release: () => {} };
      },
    };
    const app = await start({ gate }, done);
    expect((await app.ask("/", "ann")).status).toBe(200);
    expect((await app.ask("/", "ann")).status).toBe(500);
    await app.close();
  });
});

test("options that do not fit are refused at the start", async () => {
  const world = await startWorld();
  const gate = world.client();
  const tenant = () => "ann";
  expect(() => perTenant({ gate, slots: 0, tenant })).toThrow("Expected `slots` to be an integer above 0, got 0");
  expect(() => perTenant({ gate, slots: 2, tenant, timeoutMs: -1 })).toThrow("Expected `timeoutMs` to be at least 0");
  expect(() => perTenant({ gate, slots: 2, tenant, timeout: 1 } as never)).toThrow("Unknown option `timeout`");
  // @ts-expect-error -- the service does not know how many slots a tenant has
  expect(() => perTenant({ gate, tenant })).toThrow("Expected `slots`");
  // @ts-expect-error -- a pool has its own limits
  perTenant({ gate: new SlotPool({ max: 1 }), slots: 2, tenant });
  // @ts-expect-error -- a tenant is required
  expect(() => perTenant({ gate, slots: 2 })).toThrow("Expected `tenant` to be a function");
});
