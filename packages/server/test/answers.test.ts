import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { startFixture } from "./service-fixture.ts";

/** Answers as bytes on the wire, several on one connection. */

const CALL = "POST /api/v0/fairqueue/acquire";

function requestOf(line: string, body = ""): string {
  return `${line} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** The status and body of each answer, cut at the declared length. */
function answersIn(bytes: Buffer): { status: number; body: string }[] {
  const answers: { status: number; body: string }[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const headEnd = rest.indexOf("\r\n\r\n") + 4;
    const head = rest.toString("latin1", 0, headEnd);
    const end = headEnd + Number(/content-length: (\d+)/i.exec(head)?.[1]);
    if (headEnd < 4 || rest.length < end) return answers;
    answers.push({ status: Number(head.slice(9, 12)), body: rest.toString("utf8", headEnd, end) });
    rest = rest.subarray(end);
  }
  return answers;
}

function talk(url: string, said: string): { readonly received: () => Buffer; close(): void } {
  const { port, hostname } = new URL(url);
  let bytes = Buffer.alloc(0);
  const socket = connect(Number(port), hostname, () => socket.write(said));
  socket.on("data", (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  return { received: () => bytes, close: () => socket.destroy() };
}

describe("answers on one connection", () => {
  it("come in the order of the requests, even if an earlier one is held", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    const { slotToken } = await fixture.take({ ipBucket: "a" });
    const held = JSON.stringify({ hostname: "example.com", ipBucket: "b", waitMs: 5_000 });
    const bad = JSON.stringify({ hostname: "h", waitMs: "später, 后来" });
    const said = requestOf(CALL, held) + requestOf(CALL, bad) + requestOf("GET /livez");
    const line = talk(fixture.url, said);
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting.length).toBe(1);
    expect(answersIn(line.received())).toEqual([]);
    await fixture.release(slotToken);
    await expect.poll(() => answersIn(line.received()).length).toBe(3);
    const [granted, refused, alive] = answersIn(line.received());
    expect(JSON.parse(granted?.body ?? "")).toMatchObject({ result: "granted" });
    expect([refused?.status, alive?.status]).toEqual([400, 200]);
    line.close();
  });

  it("have the length that they declare, with characters of any script", async () => {
    const fixture = await startFixture();
    const bad = JSON.stringify({ hostname: "h", waitMs: "später, 后来 😀" });
    const line = talk(fixture.url, requestOf(CALL, bad) + requestOf("GET /livez"));
    await expect.poll(() => answersIn(line.received()).length).toBe(2);
    const [refused, alive] = answersIn(line.received());
    expect(JSON.parse(refused?.body ?? "").errors[0].message).toContain("später, 后来 😀");
    expect(alive?.status).toBe(200);
    line.close();
  });

  it("to HEAD have no body, and the next answer follows immediately", async () => {
    const fixture = await startFixture();
    const line = talk(fixture.url, requestOf("HEAD /livez") + requestOf("GET /livez"));
    const text = () => line.received().toString();
    await expect.poll(() => text().match(/HTTP\/1\.1 200/g)?.length).toBe(2);
    expect(text().split("\r\n\r\n")[1]).toMatch(/^HTTP/);
    line.close();
  });
});
