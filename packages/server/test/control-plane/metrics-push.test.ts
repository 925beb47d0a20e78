import { MemoryStore } from "@slotkeeper/queue";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Fixture, type FixtureInit, openWith, startFixture, stopFixture } from "../service-fixture.ts";
import { FakeController, type Mishap } from "./fake-controller.ts";

const BEARER = { headers: { authorization: "Bearer internal" } };
const QUICK = { attempts: 1, retryMs: 1, timeoutMs: 5_000 };
/** For a controller that does not answer. On a busy machine other calls may fail, too; the test does not depend on that. */
const IMPATIENT = { ...QUICK, attempts: 20, timeoutMs: 250 };
const flush = (fixture: Fixture) => fixture.request("POST", "/api/v0/flush", BEARER);

async function start(controller: FakeController, more: FixtureInit = {}, config: object = {}): Promise<Fixture> {
  return startFixture({
    controlTimes: QUICK,
    ...more,
    config: {
      internalApiToken: "internal",
      controller: {
        url: controller.url,
        apiToken: "controller-token-1",
        env: "test",
        instanceId: "i-1",
        appName: "app",
      },
      ...config,
    },
  });
}

describe("the metrics push", () => {
  it("sends exactly what the control plane expects on flush", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    const slot = await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "a" });
    await fixture.release(slot.slotToken);
    expect((await flush(fixture)).status).toBe(204);
    const [body] = controller.taken;
    expect(body).toEqual({
      source: "slot-handler",
      env: "test",
      instance_id: "i-1",
      events: [
        {
          type: "slot_handler.snapshot",
          ts: expect.any(Number),
          configVersion: "v1",
          counts: {
            session_created: 2,
            granted: expect.any(Number),
            throttled: 0,
            timeout: 0,
            released: 1,
            overloaded: 0,
            canceled: 0,
          },
          sessions: {
            total: expect.any(Number),
            pending: expect.any(Number),
            granted: expect.any(Number),
            throttled: 0,
            timeout: 0,
          },
          smoothHosts: 0,
          appName: "app",
          appVersion: "0.1.0",
          role: "slot-handler",
          instanceId: "i-1",
        },
      ],
    });
    expect(Math.abs((body?.events[0]?.ts ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  it("runs at every interval, and once more at the stop", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller, { controlTimes: { ...QUICK, pushEveryMs: 10 } });
    await expect.poll(() => controller.taken.length).toBeGreaterThan(2);
    await fixture.release((await fixture.take()).slotToken);
    await stopFixture(fixture);
    expect(controller.counted()).toMatchObject({ session_created: 1, granted: 1, released: 1 });
  });

  it("sends differences: accepted values are not sent again", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    for (const expected of [1, 1, 0]) {
      if (expected > 0) await fixture.take({ hostname: `h${controller.taken.length}` });
      await flush(fixture);
      expect(controller.taken.at(-1)?.events[0]?.counts["granted"]).toBe(expected);
    }
  });

  it("is retried at the stop; what is still not accepted is logged", async () => {
    const patient = { controlTimes: { ...QUICK, attempts: 3 } };
    const controller = await new FakeController().up();
    const fixture = await start(controller, patient);
    await fixture.take();
    controller.mishaps.metrics.push({ kind: "status", status: 503 }, { kind: "refuse" });
    await stopFixture(fixture);
    expect(controller.counted()).toMatchObject({ granted: 1 });
    const unheard = await start(controller, patient);
    await unheard.take();
    await controller.down();
    await stopFixture(unheard);
    const last = unheard.logged.find((line) => line.includes("the last metrics"));
    expect(JSON.parse(last ?? "{}")).toMatchObject({ level: "error", counts: { granted: 1, session_created: 1 } });
  });

  it("sends an event whose answer was lost again unchanged, before any newer one", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    await fixture.take({ hostname: "a" });
    controller.mishaps.metrics.push({ kind: "lose" });
    expect((await flush(fixture)).body.code).toBe("CONTROLLER_UNREACHABLE");
    await fixture.take({ hostname: "b" });
    await flush(fixture);
    const [first, again, next] = controller.taken;
    expect(again).toEqual(first);
    expect(next?.events[0]?.counts["granted"]).toBe(1);
    expect(next?.events[0]?.ts ?? 0).toBeGreaterThan(first?.events[0]?.ts ?? 0);
    expect(controller.counted()).toMatchObject({ granted: 2 });
  });

  it("accepts a 409 (the controller already has the event) only for a repeated event", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    await fixture.take({ hostname: "a" });
    controller.mishaps.metrics.push({ kind: "lose" }, { kind: "status", status: 409 });
    await flush(fixture);
    expect((await flush(fixture)).status).toBe(204);
    controller.mishaps.metrics.push({ kind: "status", status: 409 });
    await fixture.take({ hostname: "b" });
    expect((await flush(fixture)).status).toBe(502);
    await flush(fixture);
    expect(controller.counted()).toMatchObject({ granted: 2 });
  });

  const mishaps: Mishap[] = [
    { kind: "refuse" },
    { kind: "lose" },
    { kind: "hang" },
    { kind: "status", status: 500 },
    { kind: "status", status: 504 },
    { kind: "status", status: 400 },
    { kind: "status", status: 429 },
    { kind: "text", text: "not JSON, but taken" },
  ];

  it("loses nothing and counts nothing twice, whichever step fails", async () => {
    const step = fc.record({ grants: fc.nat(2), mishap: fc.option(fc.constantFrom(...mishaps)) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const controller = await new FakeController().up();
        const fixture = await start(controller, { controlTimes: IMPATIENT });
        let hosts = 0;
        for (const { grants, mishap } of steps) {
          for (let grant = 0; grant < grants; grant++) await fixture.take({ hostname: `h${hosts++}` });
          if (mishap !== null) controller.mishaps.metrics.push(mishap);
          await flush(fixture);
        }
        controller.mishaps.metrics.splice(0);
        while ((await flush(fixture)).status !== 204);
        const counted = controller.counted();
        // The original service has no `returned`.
        const { returned: _, ...counts } = fixture.service.dump().counts;
        expect(counted).toEqual(counts);
        expect(counted["granted"]).toBe(hosts);
        await stopFixture(fixture);
        await controller.down();
      }),
      // New steps each time. fast-check prints the seed and path of a failure.
      { numRuns: 25 },
    );
  });

  it("without deduplication at the controller counts twice only after a lost answer", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    const answered = mishaps.filter(({ kind }) => kind !== "lose" && kind !== "hang");
    for (const [at, mishap] of answered.entries()) {
      await fixture.take({ hostname: `h${at}` });
      controller.mishaps.metrics.push(mishap);
      await flush(fixture);
    }
    await flush(fixture);
    const sum = controller.taken
      .flatMap(({ events }) => events)
      .reduce((all, { counts }) => all + (counts["granted"] ?? 0), 0);
    expect(sum).toBe(answered.length);
  });
});

describe("flush", () => {
  it("with the controller down still sweeps sessions and store, and reports what failed", async () => {
    const controller = await new FakeController().up();
    const fixture = await start(controller);
    await controller.down();
    const reply = await flush(fixture);
    expect([reply.status, reply.body.code]).toEqual([502, "CONTROLLER_UNREACHABLE"]);
    expect(reply.text).toContain("The rest was done");
    expect(reply.text).not.toMatch(/nothing was changed/);
    expect(reply.body.detail).toContain("metrics push");
    const record = fixture.logged.find((line) => line.includes("audit: flush"));
    expect(JSON.parse(record ?? "")).toMatchObject({
      outcome: "failed",
      hosts: 0,
      endedHere: 0,
      failed: ["metrics push"],
    });
  });

  it("with the store down still pushes the metrics, and reports what failed", async () => {
    const controller = await new FakeController().up();
    class Broken extends MemoryStore {
      override cleanup(): Promise<never> {
        return Promise.reject(new Error("the store is down"));
      }
    }
    const open = openWith((clock) => new Broken({ clock }));
    const fixture = await start(controller, { open });
    const reply = await flush(fixture);
    expect([reply.status, reply.body.code]).toEqual([503, "UNAVAILABLE"]);
    expect(reply.body.detail).toContain("store cleanup");
    expect(controller.taken).toHaveLength(1);
  });

  it("without a controller sends nothing, and succeeds", async () => {
    const fixture = await startFixture({ config: { internalApiToken: "internal" } });
    expect((await flush(fixture)).status).toBe(204);
  });
});
