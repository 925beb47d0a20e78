import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { rawAnswer } from "./raw-connection.ts";
import { type Fixture, startFixture } from "./service-fixture.ts";

const LONG = "x".repeat(256);

/** A body, and the fields that the problem must name. */
const BAD_FIRST_CALLS: readonly (readonly [string, object, readonly string[]])[] = [
  ["no host at all", {}, ["hostname"]],
  ["an empty host", { hostname: "" }, ["hostname"]],
  ["a null host", { hostname: null }, ["hostname"]],
  ["a host that is a number", { hostname: 5 }, ["hostname"]],
  ["a host that is a list", { hostname: ["example.com"] }, ["hostname"]],
  ["a host of 256 characters", { hostname: LONG }, ["hostname"]],
  ["a host with a control character", { hostname: "a\u0000b" }, ["hostname"]],
  ["a host with a line break", { hostname: "a\nb" }, ["hostname"]],
  ["a hash of 129 characters", { hostnameHash: "f".repeat(129) }, ["hostnameHash"]],
  ["a hash with a control character", { hostnameHash: "\u007f" }, ["hostnameHash"]],
  ["a host with half a surrogate pair", { hostname: "a\ud800b" }, ["hostname"]],
  ["a bucket with half a surrogate pair", { hostname: "h", ipBucket: "\udc00" }, ["ipBucket"]],
  ["a bucket of 256 characters", { hostname: "h", ipBucket: LONG }, ["ipBucket"]],
  ["a bucket with a control character", { hostname: "h", ipBucket: "a\tb" }, ["ipBucket"]],
  ["a bucket that is an object", { hostname: "h", ipBucket: {} }, ["ipBucket"]],
  ["a now that is a string", { hostname: "h", now: "1732170000000" }, ["now"]],
  ["a negative wait", { hostname: "h", waitMs: -1 }, ["waitMs"]],
  ["a wait that is a string", { hostname: "h", waitMs: "10" }, ["waitMs"]],
  ["a request id of 65 characters", { hostname: "h", requestId: "r".repeat(65) }, ["requestId"]],
  ["a request id that is a number", { hostname: "h", requestId: 7 }, ["requestId"]],
  ["a negative window", { hostname: "h", throttleTimeWindowSeconds: -1 }, ["throttleTimeWindowSeconds"]],
  ["a limit on a host that is no semaphore", { hostname: "h", limit: 2 }, ["limit"]],
  ["a longest wait on a host that is no semaphore", { hostname: "h", maxWaitMs: 2 }, ["maxWaitMs"]],
  ["a limit with nothing but a hash", { hostnameHash: "abc", limit: 2 }, ["limit"]],
  ["a limit of zero", { hostname: "sem:x", limit: 0 }, ["limit"]],
  ["a limit of one and a half", { hostname: "sem:x", limit: 1.5 }, ["limit"]],
  ["several at once", { hostname: 1, ipBucket: 2, waitMs: "x" }, ["hostname", "ipBucket", "waitMs"]],
];

async function unharmed(fixture: Fixture): Promise<void> {
  expect(fixture.service.dump().sessions.total).toBe(0);
  expect((await fixture.request("GET", "/livez")).status).toBe(200);
}

describe("bad fields", () => {
  it.each(BAD_FIRST_CALLS)(
    "%s is 400 with the name of each field, and creates no session",
    async (_name, body, fields) => {
      const fixture = await startFixture();
      const reply = await fixture.call("acquire", body);
      expect([reply.status, reply.body.code]).toEqual([400, "BAD_FIELDS"]);
      expect(reply.headers.get("content-type")).toBe("application/problem+json");
      expect(reply.body.errors.map(({ field }) => field).sort()).toEqual([...fields].sort());
      for (const { field, message } of reply.body.errors) expect(message).toContain(`\`${field}\``);
      await unharmed(fixture);
    },
  );

  it("a problem contains what was expected and what was sent", async () => {
    const fixture = await startFixture();
    const { body } = await fixture.call("acquire", { hostname: "h", waitMs: -1 });
    expect(body.errors).toEqual([{ field: "waitMs", message: "Expected `waitMs` to be at least 0, got -1" }]);
  });

  it("names of the maximum length are allowed", async () => {
    const fixture = await startFixture();
    const more = {
      hostname: "h".repeat(255),
      hostnameHash: "f".repeat(128),
      ipBucket: "😀".repeat(255),
      requestId: "r".repeat(64),
    };
    const { body } = await fixture.acquire(more);
    expect((await fixture.poll(body.queryToken)).body.result).toBe("granted");
  });

  it("unknown fields are ignored", async () => {
    const fixture = await startFixture();
    const own = JSON.parse('{ "__proto__": { "waitMs": -1 } }') as object;
    expect((await fixture.acquire({ colour: "blue", ...own, constructor: 1 })).status).toBe(200);
  });

  it("a cost or a key with the name of the prototype is refused like any unknown name", async () => {
    const fixture = await startFixture();
    for (const [field, value] of [
      ["cost", 5],
      ["keys", "x"],
    ] as const) {
      const own = JSON.parse(`{ "__proto__": ${JSON.stringify(value)} }`) as object;
      const { status, body } = await fixture.acquire({ [field]: own });
      expect([status, body.code, body.errors[0]?.field]).toEqual([400, "IMPOSSIBLE", `${field}.__proto__`]);
    }
  });

  it.each([
    ["release", {}],
    ["release", { slotToken: 5 }],
    ["release", { slotToken: null, status: 200 }],
    ["renew", {}],
    ["renew", { slotToken: [] }],
    ["cancel", {}],
    ["cancel", { queryToken: "" }],
    ["cancel", { queryToken: 3 }],
    ["report", { hostname: "h" }],
    ["report", { status: 200 }],
    ["report", { hostname: "h", status: 99 }],
    ["report", { hostname: "h", status: "200" }],
    ["acquire", { queryToken: 12 }],
    ["acquire", { queryToken: "x".repeat(9000) }],
    ["acquire", { queryToken: "x", now: "then" }],
  ])("%s %j is 400", async (name, body) => {
    const fixture = await startFixture();
    const reply = await fixture.call(name, body);
    expect([reply.status, reply.body.code]).toEqual([400, "BAD_FIELDS"]);
    expect(reply.body.errors).toHaveLength(1);
    await unharmed(fixture);
  });

  it("a token is not echoed in the problem it causes", async () => {
    const fixture = await startFixture();
    const token = `fq1.${"secret".repeat(1500)}`;
    expect((await fixture.call("acquire", { queryToken: token })).text).not.toContain("secret");
    expect((await fixture.call("renew", { slotToken: { deep: "secret" } })).text).not.toContain('deep":"secret');
  });
});

describe("bad bodies", () => {
  const post = (fixture: Fixture, body: string, path = "acquire") =>
    fixture.request("POST", `/api/v0/fairqueue/${path}`, { body });

  it.each(["", "{", "nonsense", '{"hostname":"h"', "[]", '"h"', "5", "null", "true", '{"hostname":"h"}x', "\uFEFF{}"])(
    "%j is 400",
    async (body) => {
      const fixture = await startFixture();
      for (const path of ["acquire", "release", "renew", "cancel", "report"]) {
        const reply = await post(fixture, body, path);
        expect([reply.status, reply.body.code]).toEqual([400, "BAD_JSON"]);
      }
      await unharmed(fixture);
    },
  );

  it("the content of the body is not quoted", async () => {
    const fixture = await startFixture();
    expect((await post(fixture, '{"slotToken":"hush', "release")).text).not.toContain("hush");
  });

  it("64 KiB is read, one byte more is 413, and so are megabytes", async () => {
    const fixture = await startFixture();
    const padded = (size: number) => {
      const head = '{"hostname":"h","padding":"';
      return `${head}${"x".repeat(size - head.length - 2)}"}`;
    };
    expect((await post(fixture, padded(65_536))).status).toBe(200);
    for (const size of [65_537, 500_000]) {
      const reply = await post(fixture, padded(size));
      expect([reply.status, reply.body.code]).toEqual([413, "BODY_TOO_LARGE"]);
    }
  });

  it("bytes that are not UTF-8 are 400", async () => {
    const fixture = await startFixture();
    const response = await fetch(`${fixture.url}/api/v0/fairqueue/acquire`, {
      method: "POST",
      body: Buffer.from([0x7b, 0xff, 0x7d]),
    });
    expect(response.status).toBe(400);
  });

  it("the body is read whatever its content type is", async () => {
    const fixture = await startFixture();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    expect((await fixture.acquire({}, { headers })).status).toBe(200);
  });
});

describe("bad paths and methods", () => {
  it.each([
    ["GET", "/nowhere"],
    ["POST", "/api/v0/fairqueue"],
    ["POST", "/api/v0/fairqueue/acquire/"],
    ["POST", "/api/v1/fairqueue/acquire"],
    ["POST", "/fairqueue/acquire"],
    ["DELETE", "/api/v0/%2e%2e/livez"],
    ["GET", "//livez"],
  ])("%s %s is 404", async (method, path) => {
    const fixture = await startFixture();
    const reply = await fixture.request(method, path);
    expect([reply.status, reply.body.code]).toEqual([404, "NOT_FOUND"]);
  });

  it.each([
    ["GET", "/api/v0/fairqueue/acquire", "POST"],
    ["PUT", "/api/v0/fairqueue/release", "POST"],
    ["DELETE", "/api/v0/fairqueue/cancel", "POST"],
    ["OPTIONS", "/api/v0/fairqueue/acquire", "POST"],
    ["POST", "/livez", "GET, HEAD"],
    ["POST", "/", "GET, HEAD"],
  ])("%s %s is 405 and lists what is allowed", async (method, path, allow) => {
    const fixture = await startFixture();
    const reply = await fixture.request(method, path);
    expect([reply.status, reply.body.code, reply.headers.get("allow")]).toEqual([405, "METHOD_NOT_ALLOWED", allow]);
  });
});

describe("what is not HTTP", () => {
  it("gets a 400 with a problem document", async () => {
    const fixture = await startFixture();
    const answer = await rawAnswer(fixture, "this is not HTTP\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "BAD_REQUEST", status: 400 });
    await unharmed(fixture);
  });

  it("headers without end are 431", async () => {
    const fixture = await startFixture();
    expect(await rawAnswer(fixture, `GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("a caller that leaves in the middle of its body leaves nothing behind", async () => {
    const fixture = await startFixture();
    const { port, hostname } = new URL(fixture.url);
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          'POST /api/v0/fairqueue/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"hostname"',
          () => {
            socket.destroy();
            resolve();
          },
        );
      });
    });
    await unharmed(fixture);
  });
});

describe("unusual but valid HTTP", () => {
  const head = (answer: string) => answer.split("\r\n\r\n")[0] ?? "";

  it("an absolute-form target uses its path, and its host counts", async () => {
    const fixture = await startFixture();
    const get = (target: string, host = "x") =>
      rawAnswer(fixture, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    for (const target of ["http://x/livez", "HTTP://user@example.com:80/livez?a=b", "https://[::1]/livez"]) {
      expect([target, await get(target)]).toEqual([target, expect.stringMatching(/^HTTP\/1\.1 200 /)]);
    }
    expect(await get("http://x")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get("http://localhost/api/v0/state?limit=1", "evil.example")).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get("http://evil.example/api/v0/state", "localhost")).toMatch(/^HTTP\/1\.1 404 /);
    expect(await get("nonsense")).toMatch(/^HTTP\/1\.1 4/);
  });

  it.each([
    ["two hosts", "Host: 127.0.0.1\r\nHost: evil.example\r\n"],
    ["two hosts in other case", "host: a\r\nHOST: b\r\n"],
    ["none", ""],
  ])("%s are 400", async (_title, hosts) => {
    const fixture = await startFixture();
    const answer = await rawAnswer(fixture, `GET /livez HTTP/1.1\r\n${hosts}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "BAD_REQUEST" });
  });

  it("an unknown expectation is ignored", async () => {
    const fixture = await startFixture();
    const answer = await rawAnswer(
      fixture,
      "GET /livez HTTP/1.1\r\nHost: x\r\nExpect: cake\r\nConnection: close\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain("X-Request-Id");
  });

  it("HTTP/1.0 needs no Host header", async () => {
    const fixture = await startFixture();
    expect(await rawAnswer(fixture, "GET /livez HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    ["a length and chunks", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"],
    ["a length that is a list", "Content-Length: 2, 2\r\n\r\n{}"],
    ["a length with a sign", "Content-Length: +2\r\n\r\n{}"],
    ["chunks spelled oddly", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"],
    ["a space before the colon", "Content-Length : 2\r\n\r\n{}"],
    ["a folded header", "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}"],
  ])("%s, which could smuggle a request, is 400", async (_title, rest) => {
    const fixture = await startFixture();
    const call = `POST /api/v0/fairqueue/acquire HTTP/1.1\r\nHost: x\r\n${rest}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`;
    const answer = await rawAnswer(fixture, call);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).not.toContain(" 200 ");
  });

  it("every answer names the server and forbids content sniffing, including answers of the HTTP parser", async () => {
    const fixture = await startFixture();
    const requests = ["nonsense\r\n\r\n", "GET /livez HTTP/1.0\r\n\r\n", "GET /nowhere HTTP/1.0\r\n\r\n"];
    requests.push(`GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}\r\n\r\n`);
    for (const request of requests) {
      const answer = head(await rawAnswer(fixture, request));
      expect(answer).toMatch(/\r\nX-Content-Type-Options: nosniff/i);
      expect(answer).toMatch(/\r\nX-Request-Id: [\w-]{12}/i);
    }
  });
});

describe("JSON that is nested too deeply", () => {
  const nested = `${"[".repeat(30_000)}${"]".repeat(30_000)}`;

  it.each([
    ["acquire", `{"hostname":${nested}}`, 400],
    ["acquire", `{"hostname":"h","ipBucket":${nested}}`, 400],
    ["acquire", `{"hostname":"h","unknown":${nested}}`, 200],
    ["acquire", `{"queryToken":${nested}}`, 400],
    ["release", `{"slotToken":"s","status":${nested}}`, 200],
    ["release", `{"slotToken":${nested}}`, 400],
    ["renew", `{"slotToken":${nested}}`, 400],
    ["report", `{"hostname":"h","status":${nested}}`, 400],
    ["acquire", nested, 400],
  ])("in %s is an ordinary mistake, and leaves no stack in the log", async (route, body, status) => {
    const fixture = await startFixture();
    const reply = await fixture.request("POST", `/api/v0/fairqueue/${route}`, { body });
    expect(reply.status).toBe(status);
    expect(reply.text.length).toBeLessThan(1_000);
    expect(fixture.logged.join("")).not.toContain("stack");
  });
});
