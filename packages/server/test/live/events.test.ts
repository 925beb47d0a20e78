import type { LiveState } from "@slotkeeper/protocol";
import { LiveStateSchema } from "@slotkeeper/protocol/schemas";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, describe, expect, it } from "vitest";
import { type Fixture, startFixture, stopFixture } from "../service-fixture.ts";

const isLiveState = new Ajv2020({ strict: false }).compile(LiveStateSchema);
const controllers = new Set<AbortController>();

afterEach(() => {
  for (const controller of controllers) controller.abort();
  controllers.clear();
});

interface Listening {
  readonly response: Response;
  readonly events: { event: string; data: Record<string, unknown> }[];
  isOver: boolean;
}

/** Listens as a browser does: with `fetch` and a bearer, reading as data arrives. */
async function listen({ url }: Fixture, headers: Record<string, string> = {}): Promise<Listening> {
  const controller = new AbortController();
  controllers.add(controller);
  const response = await fetch(`${url}/api/v0/events`, { headers, signal: controller.signal });
  const listening: Listening = { response, events: [], isOver: false };
  const read = async () => {
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const event = /^event: (.*)$/m.exec(part)?.[1] ?? "";
        listening.events.push({ event, data: JSON.parse(/^data: (.*)$/m.exec(part)?.[1] ?? "{}") });
      }
    }
  };
  void read()
    .catch(() => {})
    .finally(() => {
      listening.isOver = true;
    });
  return listening;
}

const states = ({ events }: Listening) =>
  events.filter(({ event }) => event === "state").map(({ data }) => data as unknown as LiveState);
const gauge = async (fixture: Fixture, name: string) =>
  Number(new RegExp(`^${name} (.*)$`, "m").exec((await fixture.request("GET", "/metrics")).text)?.[1]);

describe("GET /events", () => {
  it("can be read by fetch with the bearer: a greeting, then changes, each matching its schema", async () => {
    const fixture = await startFixture({ config: { internalApiToken: "internal", fairQueue: { maxSlotPerHost: 1 } } });
    const listening = await listen(fixture, { authorization: "Bearer internal" });
    expect(listening.response.headers.get("content-type")).toBe("text/event-stream");
    await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "b" });
    const row = () =>
      states(listening)
        .flatMap(({ hosts }) => hosts)
        .at(-1);
    await expect.poll(row, { timeout: 5_000 }).toMatchObject({
      hostname: "example.com",
      limit: 1,
      inFlight: 1,
      pending: 1,
      breaker: "closed",
    });
    expect(listening.events[0]).toMatchObject({ event: "hello", data: { version: "0.1.0", configVersion: "default" } });
    for (const state of states(listening)) expect([state, isLiveState(state)]).toEqual([state, true]);
    expect(states(listening).at(-1)).toMatchObject({ counts: { granted: 1 }, slots: { inFlight: 1 } });
  });

  it("reports operators' actions at once", async () => {
    const fixture = await startFixture();
    const listening = await listen(fixture);
    await fixture.request("POST", "/api/v0/hosts/example.com", { body: '{"maxSlotPerHost":3}' });
    await expect
      .poll(() => listening.events.find(({ event }) => event === "audit")?.data)
      .toMatchObject({ action: "limits", hostname: "example.com", limits: { maxSlotPerHost: 3 }, outcome: "done" });
  });

  it("sends more hosts than fit in turns, with the number of those left", async () => {
    const fixture = await startFixture({ config: { fairQueue: { globalMaxWaiters: -1 } } });
    const listening = await listen(fixture);
    await Promise.all(Array.from({ length: 250 }, (_, n) => fixture.acquire({ hostname: `h${n}` })));
    const sent = () => new Set(states(listening).flatMap(({ hosts }) => hosts.map(({ hostname }) => hostname))).size;
    await expect.poll(sent, { timeout: 10_000 }).toBe(250);
    for (const { hosts } of states(listening)) expect(hosts.length).toBeLessThanOrEqual(100);
    expect(Math.max(...states(listening).map(({ more }) => more))).toBeGreaterThan(0);
  });

  it("removes a listener that hangs up, and ends all of them when the service stops", async () => {
    const fixture = await startFixture();
    const [staying, leaving] = [await listen(fixture), await listen(fixture)];
    expect(await gauge(fixture, "slotkeeper_event_listeners")).toBe(2);
    await leaving.response.body?.cancel().catch(() => {});
    for (const controller of [...controllers].slice(1)) controller.abort();
    await expect.poll(() => gauge(fixture, "slotkeeper_event_listeners")).toBe(1);
    await stopFixture(fixture);
    await expect.poll(() => staying.isOver).toBe(true);
  });

  it("answers HEAD without listening", async () => {
    const fixture = await startFixture();
    expect((await fetch(`${fixture.url}/api/v0/events`, { method: "HEAD" })).status).toBe(200);
    expect(await gauge(fixture, "slotkeeper_event_listeners")).toBe(0);
  });
});
