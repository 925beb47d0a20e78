/**
 * The method of the seed with its database: every call tries once through a function of PostgreSQL. Callers are not
 * notified when a slot is freed; they ask again every 500 ms. `servers/seed-sql/main.js SLOTS SLOTS_PER_BUCKET DSN`.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "pg";

const [slots = "1", slotsPerBucket = "1", dsn = ""] = process.argv.slice(2);
const perBucket = slotsPerBucket === "Infinity" ? 0 : Number(slotsPerBucket);
const pool = new Pool({ connectionString: dsn, max: 10 });
const sessions = new Map<string, { readonly host: string; readonly bucket: string }>();
const leases = new Map<string, { readonly host: string; readonly bucket: string }>();
let names = 0;

async function tryOnce(queryToken: string): Promise<object> {
  const session = sessions.get(queryToken);
  if (session === undefined) return { result: "timeout" };
  const { rows } = await pool.query<{ status: string; slot_token: string }>(
    "SELECT status, slot_token FROM download_try_acquire_slot($1, $2, $3, $4, $5, $6)",
    [null, session.host, session.bucket, Date.now(), Number(slots), perBucket],
  );
  if (rows[0]?.status !== "ACQUIRED") return { result: "pending", queryToken };
  sessions.delete(queryToken);
  leases.set(rows[0].slot_token, session);
  return { result: "granted", queryToken, slotToken: rows[0].slot_token, fence: ++names, leaseMs: 30_000 };
}

async function begin({ hostname, ipBucket }: { hostname: string; ipBucket: string }): Promise<object> {
  await pool.query("SELECT is_protected FROM download_check_throttle_protection($1, $2)", [null, hostname]);
  const queryToken = `session-${++names}`;
  sessions.set(queryToken, { host: hostname, bucket: ipBucket });
  return tryOnce(queryToken);
}

async function release(slotToken: string): Promise<object> {
  const lease = leases.get(slotToken);
  leases.delete(slotToken);
  await pool.query("SELECT download_release_slot($1, $2, $3, $4)", [null, lease?.bucket, slotToken, Date.now()]);
  return { result: "ok" };
}

interface Call {
  readonly slotToken?: string;
  readonly queryToken?: string;
  readonly hostname: string;
  readonly ipBucket: string;
}

function answerTo(call: Call): Promise<object> {
  if (call.slotToken !== undefined) return release(call.slotToken);
  return call.queryToken === undefined ? begin(call) : tryOnce(call.queryToken);
}

async function answer(call: Call, response: ServerResponse): Promise<void> {
  const text = JSON.stringify(await answerTo(call));
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => (body += chunk));
  request.on("end", () => void answer(JSON.parse(body) as Call, response));
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ event: "listening", url: `http://127.0.0.1:${port}` }));
});
