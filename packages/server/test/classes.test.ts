import { type ServiceState, waitCause } from "@slotkeeper/protocol";
import { describe, expect, it } from "vitest";
import { type Fixture, startFixture } from "./service-fixture.ts";

const CLASSES = { chat: { weight: 4, floor: 2 }, batch: { ceiling: 2 } };
const config = { fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: -1, classes: CLASSES } };

type HostState = ServiceState["hosts"][number];

async function hostOf(fixture: Fixture): Promise<HostState> {
  const { hosts } = JSON.parse((await fixture.request("GET", "/api/v0/state")).text) as ServiceState;
  return hosts[0] as HostState;
}

describe("the class of a request", () => {
  it("is shown with its slot and its session, and counted for its class", async () => {
    const fixture = await startFixture({ config });
    await fixture.take({ class: "chat", width: 2, ipBucket: "a" });
    await fixture.take({ ipBucket: "a", width: 2 });
    await fixture.acquire({ class: "chat", ipBucket: "b", waitMs: 20 });
    await fixture.acquire({ ipBucket: "b", waitMs: 20 });
    const { classes, slots, sessions, buckets } = await hostOf(fixture);
    expect(classes?.map(({ share: _share, progressMs: _meter, ...rest }) => rest)).toEqual([
      { name: "batch", weight: 1, floor: 0, ceiling: 2, inFlight: 0, waiting: 0 },
      { name: "chat", weight: 4, floor: 2, inFlight: 2, waiting: 1 },
      { name: "default", weight: 1, floor: 0, inFlight: 2, waiting: 1 },
    ]);
    expect(classes?.map(({ progressMs }) => progressMs !== undefined)).toEqual([false, true, true]);
    const lines = buckets.map(
      (one) => `${one.bucket} ${one.class ?? "-"}: ${one.inFlight} held, ${one.waiting} waiting`,
    );
    expect(lines.toSorted()).toEqual([
      "a -: 2 held, 0 waiting",
      "a chat: 2 held, 0 waiting",
      "b -: 0 held, 1 waiting",
      "b chat: 0 held, 1 waiting",
    ]);
    expect(new Set(slots.map((slot) => slot.class))).toEqual(new Set(["chat", undefined]));
    expect(new Set(sessions.map((session) => session.class))).toEqual(new Set(["chat", undefined]));
  });

  it("may be absent, null, empty or `default`: they are the same, and a host without classes shows none", async () => {
    const fixture = await startFixture();
    const asked = [{}, { class: null }, { class: "" }, { class: "default" }];
    const tokens = await Promise.all(asked.map((one) => fixture.acquire({ requestId: "r", ...one })));
    expect(tokens.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const host = await hostOf(fixture);
    expect([host.sessions.length, "classes" in host]).toEqual([1, false]);
  });

  it.each([5, ["chat"], "c".repeat(33), "a\nb"])("that is no name is 400 with the field: %j", async (named) => {
    const fixture = await startFixture({ config });
    const { status, body } = await fixture.acquire({ class: named });
    expect([status, body.code, body.errors]).toEqual([
      400,
      "BAD_FIELDS",
      [{ field: "class", message: expect.stringContaining("Expected `class` to be ") }],
    ]);
  });

  it("belongs to the request: the same `requestId` with another class is 409", async () => {
    const fixture = await startFixture({ config });
    await fixture.acquire({ requestId: "r", class: "chat" });
    const other = await fixture.acquire({ requestId: "r", class: "batch" });
    expect([other.status, other.body.code]).toEqual([409, "DEMAND_MISMATCH"]);
    const message = "Expected `class` to be chat, as in the session of this `requestId`, got batch";
    expect(other.body).toMatchObject({ detail: message, errors: [{ field: "class", message }] });
    expect((await fixture.acquire({ requestId: "r" })).status).toBe(409);
    expect((await fixture.acquire({ requestId: "r", class: "chat" })).status).toBe(200);
  });

  it("is in the token, for an instance that does not know the session", async () => {
    const signed = { ...config, tokenKeys: ["a-key-of-at-least-16-characters"] };
    const first = await startFixture({ config: signed });
    await first.take({ width: 4 });
    const { body: waiting } = await first.acquire({ class: "chat", waitMs: 20 });
    const second = await startFixture({ config: signed });
    await second.poll(waiting.queryToken);
    expect((await hostOf(second)).slots.map((slot) => slot.class)).toEqual(["chat"]);
  });
});

describe("the limits of a class", () => {
  it("hold back only the class at its ceiling, and the answer and the state say so", async () => {
    const fixture = await startFixture({ config });
    const held = await fixture.take({ class: "batch", width: 2 });
    const { body: waiting } = await fixture.acquire({ class: "batch", waitMs: 20 });
    expect(waiting).toMatchObject({ result: "pending", blockedBy: "class" });
    expect(waiting).not.toHaveProperty("estimatedWaitMs");
    await fixture.take({ class: "chat" });
    const host = await hostOf(fixture);
    const [session] = host.sessions;
    expect(waitCause(session as never, host, { bucket: "", breakerLeft: "" }).cause).toBe(
      "Its class “batch” has all the slots that it may have: 2 of 2.",
    );
    await fixture.release(held.slotToken);
    expect((await fixture.poll(waiting.queryToken)).body.result).toBe("granted");
  });

  it.each([
    [
      { class: "chatt" },
      "class",
      "Expected `class` to be absent, because the host has no such class (it has `batch`, `chat`, `default`), got chatt",
    ],
    [{ class: "batch", width: 3 }, "width", expect.stringMatching(/^Expected `width` to be at most 2, .*got 3$/)],
  ])("refuse what they can never allow, with the field: %j", async (asked, field, message) => {
    const fixture = await startFixture({ config });
    const { status, body } = await fixture.acquire(asked);
    expect([status, body.code, body.errors]).toEqual([400, "IMPOSSIBLE", [{ field, message }]]);
  });

  it("are unknown at a host without classes, where only `default` may be named", async () => {
    const fixture = await startFixture();
    expect((await fixture.acquire({ class: "chat" })).body.code).toBe("IMPOSSIBLE");
    expect((await fixture.acquire({ class: "default" })).status).toBe(200);
  });
});

describe("live limits of a host with floors", () => {
  const set = (fixture: Fixture, host: string, maxSlotPerHost: number) =>
    fixture.request("POST", `/api/v0/hosts/${host}?new=true`, { body: JSON.stringify({ maxSlotPerHost }) });

  it.each([true, false])("leave at least one slot above the floors, also if the host was used: %j", async (isUsed) => {
    const fixture = await startFixture({ config });
    if (isUsed) await fixture.take();
    const refused = await set(fixture, "example.com", 2);
    expect([refused.status, refused.body["code"], refused.body["errors"]]).toEqual([
      400,
      "BAD_FIELDS",
      [
        {
          field: "maxSlotPerHost",
          message: "Expected `maxSlotPerHost` to be above 2, the sum of the floors of the host's classes, got 2",
        },
      ],
    ]);
    expect((await set(fixture, "example.com", 3)).status).toBe(204);
  });
});

describe("why a session waits for its class", () => {
  const session = { isAwake: true, blockedBy: "class", class: "batch", width: 1 };
  const host = (inFlight: number, more: object = {}) => ({
    classes: [{ name: "batch", weight: 1, floor: 0, ceiling: 10, inFlight, waiting: 1 }],
    ...more,
  });

  it.each([
    [session, host(10), "Its class “batch” has all the slots that it may have: 10 of 10."],
    [{ ...session, width: 3 }, host(8), "It needs 3 slots, and its class “batch” has 8 of 10 that it may have."],
    [
      session,
      host(8),
      "Another session of its class “batch” is first, and needs more slots than the class may have now.",
    ],
    [session, {}, "Its class “batch” is at its limit."],
    [{ ...session, class: undefined }, {}, "Its class “default” is at its limit."],
  ])("names the class and its limit: %j at %j", (one, at, cause) => {
    expect(waitCause(one as never, at as never, { bucket: "", breakerLeft: "" }).cause).toBe(cause);
  });
});
