/**
 * The method of the seed without its database: every call tries once, under the same limits. Callers are not notified
 * when a slot is freed; they ask again every 500 ms. `servers/seed/main.js SLOTS SLOTS_PER_BUCKET`.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const [slots = 1, slotsPerBucket = 1] = process.argv.slice(2).map(Number);
const sessions = new Map<string, { readonly host: string; readonly bucket: string }>();
const leases = new Map<string, { readonly host: string; readonly bucket: string }>();
const held = new Map<string, number>();
let names = 0;

function count(key: string, by: number): void {
  held.set(key, (held.get(key) ?? 0) + by);
}

function tryOnce(queryToken: string): object {
  const session = sessions.get(queryToken);
  if (session === undefined) return { result: "timeout" };
  const { host, bucket } = session;
  const isFull = (held.get(host) ?? 0) >= slots || (held.get(`${host} ${bucket}`) ?? 0) >= slotsPerBucket;
  if (isFull) return { result: "pending", queryToken };
  sessions.delete(queryToken);
  const slotToken = `slot-${++names}`;
  leases.set(slotToken, session);
  count(host, 1);
  count(`${host} ${bucket}`, 1);
  return { result: "granted", queryToken, slotToken, fence: names, leaseMs: 30_000 };
}

function begin({ hostname, ipBucket }: { hostname: string; ipBucket: string }): object {
  const queryToken = `session-${++names}`;
  sessions.set(queryToken, { host: hostname, bucket: ipBucket });
  return tryOnce(queryToken);
}

function release(slotToken: string): object {
  const lease = leases.get(slotToken);
  if (lease !== undefined) {
    leases.delete(slotToken);
    count(lease.host, -1);
    count(`${lease.host} ${lease.bucket}`, -1);
  }
  return { result: "ok" };
}

interface Call {
  readonly slotToken?: string;
  readonly queryToken?: string;
  readonly hostname: string;
  readonly ipBucket: string;
}

function answerTo(call: Call): object {
  if (call.slotToken !== undefined) return release(call.slotToken);
  return call.queryToken === undefined ? begin(call) : tryOnce(call.queryToken);
}

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    const call = JSON.parse(body) as Call;
    const text = JSON.stringify(answerTo(call));
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ event: "listening", url: `http://127.0.0.1:${port}` }));
});
