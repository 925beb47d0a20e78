// Servers that are broken or hostile below the level of JSON, over real connections.
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { SlotClient, UnavailableError } from "@slotkeeper/client";
import { expect, test } from "vitest";
import { startRedirects, startServer } from "./broken-server.ts";
import { granted } from "./scripted-service.ts";

const host = { hostname: "example.com", bucket: "me" };
const token = "a-shared-key-of-some-length";

async function reasonAt(url: string): Promise<string> {
  const keeper = new SlotClient({ url, token, maxWaitMs: 600, perRequestTimeoutMs: 300, maxAttempts: 2 });
  let runs = 0;
  const error = await keeper.run(host, () => void runs++).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UnavailableError);
  expect(runs).toBe(0);
  return (error as UnavailableError).reason;
}

test.each([301, 302, 303, 307, 308])(
  "a redirect with status %i is not followed: the other address gets no key and no token",
  async (status) => {
    const { url, seen } = await startRedirects(status);
    expect(await reasonAt(url)).toBe(`an answer that redirects, which is not followed, with status ${status}`);
    expect(seen.redirected).toBeGreaterThan(0);
    expect(seen.followed).toBe(0);
  },
);

test("an endless answer is read up to 64 kB, and its connection is closed", async () => {
  let sent = 0;
  let closed = 0;
  const url = await startServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const chunk = " ".repeat(16_384);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on("drain", more).on("close", () => closed++);
    more();
  });
  expect(await reasonAt(url)).toBe("an answer of more than 64 kB");
  await expect.poll(() => closed).toBeGreaterThan(0);
  // What the buffers of both sides take; without the limit it would be all that 300 ms are enough for.
  expect(sent / closed).toBeLessThan(16_000_000);
});

test("an answer that is small only while it is compressed is not unpacked", async () => {
  const bomb = gzipSync(JSON.stringify({ ...granted, padding: " ".repeat(5_000_000) }));
  const url = await startServer((_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb));
  expect(await reasonAt(url)).toBe("an answer of more than 64 kB");
});

test("an answer of exactly 64 kB is accepted, split within a character", async () => {
  const empty = JSON.stringify({ ...granted, padding: "ä" });
  const text = JSON.stringify({ ...granted, padding: `ä${" ".repeat(65_536 - Buffer.byteLength(empty))}` });
  expect(Buffer.byteLength(text)).toBe(65_536);
  const bytes = Buffer.from(text);
  const middle = bytes.indexOf(0xc3) + 1;
  const url = await startServer((request, response) => {
    if (request.url?.endsWith("release")) return void response.end(JSON.stringify({ result: "ok" }));
    response.write(bytes.subarray(0, middle));
    setImmediate(() => response.end(bytes.subarray(middle)));
  });
  expect(await new SlotClient({ url }).run(host, (slot) => slot.token)).toBe(granted.slotToken);
});

const faults: Record<string, [RegExp, (response: ServerResponse) => void]> = {
  "headers without a body": [/^no answer within \d+ ms$/, (response) => response.writeHead(200).flushHeaders()],
  "half a body": [
    /^no answer within \d+ ms$/,
    (response) => void response.writeHead(200, { "content-length": "500" }).write('{"result":"gra'),
  ],
  "half a body, then a reset": [
    /terminated|fetch failed/,
    (response) => {
      response.writeHead(200, { "content-length": "500" }).write('{"result":"gra');
      setTimeout(() => response.socket?.resetAndDestroy(), 20);
    },
  ],
  "a reset": [/^fetch failed \((?:ECONNRESET|UND_ERR_SOCKET)\)$/, (response) => response.socket?.resetAndDestroy()],
  "something that is not HTTP": [/^fetch failed/, (response) => response.socket?.end("SSH-2.0-OpenSSH\r\n\r\n")],
  "very long headers": [
    /^fetch failed/,
    (response) => void response.writeHead(200, { "x-long": "x".repeat(100_000) }).end(JSON.stringify(granted)),
  ],
  "an unknown encoding of the body": [
    /./,
    (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("no gzip"),
  ],
};

test.each(Object.keys(faults))("%s: no work runs, and the error names the reason", async (name) => {
  const [reason, fault] = faults[name] as (typeof faults)[string];
  const url = await startServer((_, response) => fault(response));
  expect(await reasonAt(url)).toMatch(reason);
});

test("an answer that arrives byte by byte ends with the timeout of its call", async () => {
  const url = await startServer((_, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(timer));
  });
  expect(await reasonAt(url)).toMatch(/^no answer within \d+ ms$/);
});
