import { randomBytes } from "node:crypto";
import type { BeginAnswer } from "@slotkeeper/protocol";
import { slotTokenOf } from "@slotkeeper/queue/internals";
import { HolderTraces } from "@slotkeeper/server/internals";
import { type Exchange } from "@slotkeeper/server/portable";
import { describe, expect, test } from "vitest";
import { type Answer, type Fixture, type Reply, startFixture } from "./service-fixture.ts";

const ONE_SLOT = { config: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1, pollWindowMs: 1_000 } } };

function newTraceparent(): string {
  return `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
}

/** Takes a slot with a trace. */
async function takeTraced(service: Fixture, traceparent: string, more: object = {}): Promise<Answer> {
  const { body, headers } = await service.acquire({ waitMs: 5_000, ...more }, { headers: { traceparent } });
  expect([body.result, headers.get("x-slot-holders")]).toEqual(["granted", null]);
  return body;
}

/** Waits with a trace, until the service knows why. */
function waitTraced(service: Fixture): Promise<Reply> {
  return service.acquire({ waitMs: 50 }, { headers: { traceparent: newTraceparent() } });
}

describe("traces of holders", () => {
  test("TRACE1: a traced call that waits gets the trace of the holder that released its slot", async () => {
    const service = await startFixture(ONE_SLOT);
    const [holder, hold, waiter] = [newTraceparent(), newTraceparent(), newTraceparent()];
    const { slotToken } = await takeTraced(service, holder);
    const first = await service.acquire({ waitMs: 50 }, { headers: { traceparent: waiter } });
    expect([first.body.result, first.headers.get("x-slot-holders")]).toEqual(["pending", holder]);
    const polled = service.poll(first.body.queryToken, { headers: { traceparent: waiter } });
    // The release has the span of the hold.
    await service.call("release", { slotToken }, { headers: { traceparent: hold } });
    const granted = await polled;
    expect([granted.body.result, granted.headers.get("x-slot-holders")]).toEqual(["granted", hold]);
  });

  test("a renewal names the span of the hold, and a slot that another host has is not named", async () => {
    const service = await startFixture(ONE_SLOT);
    const [holder, hold] = [newTraceparent(), newTraceparent()];
    const { slotToken } = await takeTraced(service, holder);
    await takeTraced(service, newTraceparent(), { hostname: "other.example" });
    await service.call("renew", { slotToken }, { headers: { traceparent: hold } });
    const { headers } = await waitTraced(service);
    expect(headers.get("x-slot-holders")).toBe(hold);
  });

  test("TRACE3: a call without a trace is neither named nor gets names", async () => {
    const service = await startFixture(ONE_SLOT);
    const { slotToken } = await service.take();
    const traced = await waitTraced(service);
    expect([traced.body.result, traced.headers.get("x-slot-holders")]).toEqual(["pending", null]);
    await service.call("cancel", { queryToken: traced.body.queryToken });
    await service.release(slotToken);
    await takeTraced(service, newTraceparent());
    const { body, headers } = await service.acquire({ waitMs: 50 });
    expect([body.result, headers.get("x-slot-holders")]).toEqual(["pending", null]);
  });

  test("a holder whose lease ended without a release is named to the one who gets the slot", async () => {
    const service = await startFixture({ config: { fairQueue: { ...ONE_SLOT.config.fairQueue, leaseSeconds: 1 } } });
    const holder = newTraceparent();
    await takeTraced(service, holder);
    const { body, headers } = await waitTraced(service);
    expect([body.result, headers.get("x-slot-holders")]).toEqual(["pending", holder]);
    let polled = await service.poll(body.queryToken, { headers: { traceparent: newTraceparent() } });
    while (polled.body.result === "pending") {
      polled = await service.poll(body.queryToken, { headers: { traceparent: newTraceparent() } });
    }
    expect([polled.body.result, polled.headers.get("x-slot-holders")]).toEqual(["granted", holder]);
  });

  test("TRACE2: at most eight holders are named, the newest", async () => {
    const service = await startFixture({ config: { fairQueue: { maxSlotPerHost: 20, maxSlotPerIp: -1 } } });
    const holders = Array.from({ length: 20 }, newTraceparent);
    for (const holder of holders) await takeTraced(service, holder);
    const { headers } = await waitTraced(service);
    expect(headers.get("x-slot-holders")?.split(", ")).toEqual(holders.slice(-8));
  });
});

test("TRACE2: only the last thousand hosts are kept", () => {
  const traces = new HolderTraces();
  const answered = (at: number, answer: "granted" | "pending") => {
    const sent: string[] = [];
    const exchange = { header: () => newTraceparent(), setHeader: (name: string) => sent.push(name) };
    const session = { host: `host ${at}` };
    const more = { session, blockedBy: "host-limit", slotToken: slotTokenOf(session.host, "secret"), leaseMs: 60_000 };
    traces.waiting(exchange as unknown as Exchange)?.answered({ result: answer, ...more } as unknown as BeginAnswer);
    return sent;
  };
  for (let at = 0; at <= 1_000; at++) answered(at, "granted");
  expect([0, 1, 1_000].map((at) => answered(at, "pending"))).toEqual([[], ["X-Slot-Holders"], ["X-Slot-Holders"]]);
});

describe("a `traceparent` that is not valid counts as absent", () => {
  const [id, span] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  test.each([
    "",
    "00",
    `00-${id}-${span}`,
    `00-${id}-${span}-1`,
    `00-${id}-${span}-01-`,
    `00-${id}-${span}-01-extra`,
    `00-${id}-${span}-011`,
    `01-${id}-${span}-01`,
    `ff-${id}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${id}-${"0".repeat(16)}-01`,
    `00-${id.toUpperCase()}-${span}-01`,
    `00-${id.replace("4", "g")}-${span}-01`,
    `00_${id}_${span}_01`,
    "x".repeat(8_000),
    `${"0".repeat(55)},00-${id}-${span}-01`,
  ])("%s", async (traceparent) => {
    const service = await startFixture(ONE_SLOT);
    expect((await service.acquire({ waitMs: 1_000 }, { headers: { traceparent } })).body.result).toBe("granted");
    const { body, headers } = await waitTraced(service);
    expect([body.result, headers.get("x-slot-holders")]).toEqual(["pending", null]);
  });

  test("of two headers the first counts, because an instrumentation adds its own to that of the client", async () => {
    const service = await startFixture(ONE_SLOT);
    const [first, second] = [newTraceparent(), newTraceparent()];
    await service.acquire({ waitMs: 1_000 }, { headers: { traceparent: `${first}, ${second}` } });
    const { headers } = await waitTraced(service);
    expect(headers.get("x-slot-holders")).toBe(first);
  });
});

test("the line of a refused request has the trace id of its caller, and nothing else of the header", async () => {
  const service = await startFixture();
  const traceparent = newTraceparent();
  await service.call("acquire", {}, { headers: { traceparent } });
  await service.call("acquire", {}, { headers: { traceparent: "injected text" } });
  const lines = service.logged.filter((line) => line.includes('"request"')).map((line) => JSON.parse(line));
  expect(lines.map(({ traceId }) => traceId)).toEqual([traceparent.slice(3, 35), undefined]);
  expect(service.logged.join()).not.toContain("injected");
});
