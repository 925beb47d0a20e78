// Measures how long the event loop of a service is blocked when it knows many hosts: `npm run build && node
// scripts/silence.mjs [--hosts 99000] [--rounds 3] [--only TEXT]`.
//
// The service runs in a process of its own. For each kind of work, the longest silence of its event loop is measured
// (`monitorEventLoopDelay`) in several rounds. The shortest of these counts: other processes and the garbage collector
// delay single rounds, but work that blocks does so in each. Exits with 1 if one is longer than 50 ms; only thousands of
// requests that arrive together may take longer.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const MOST_MS = 50;
/** Node parses what it reads at once from each connection: a bare server of Node needs 150 ms for this. */
const FLOOD_MS = 250;
const TOKEN = "a-token-for-this-measurement";
/** Longer than the time that the hosts take to appear and the work takes. */
const IDLE_SECONDS = 600;

const { values } = parseArgs({
  options: {
    hosts: { type: "string", default: "99000" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "" },
    child: { type: "boolean" },
    config: { type: "string" },
  },
});
const HOSTS = Number(values.hosts);

if (values.child === true) await serve();
else process.exitCode = (await measureAll()) ? 0 : 1;

/** The child: starts the service, and measures between two messages of the parent. */
async function serve() {
  const { Service } = await import("@slotkeeper/server");
  const log = { write: () => {}, isJson: true, hasColours: false };
  const service = await Service.start({ file: values.config, log });
  process.on("SIGHUP", () => void service.refresh());
  const delay = monitorEventLoopDelay({ resolution: 1 });
  process.on("message", (message) => {
    if (message === "begin") {
      delay.reset();
      delay.enable();
    } else {
      delay.disable();
      process.send({ maxMs: delay.max / 1e6, rssMb: process.memoryUsage.rss() / 2 ** 20 });
    }
  });
  process.on("disconnect", () => process.exit());
  process.send({ url: service.url });
}

async function measureAll() {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-silence-"));
  const config = join(folder, "config.json");
  const write = (more) => writeFileSync(config, JSON.stringify(configOf(more)));
  write({});
  const child = fork(fileURLToPath(import.meta.url), ["--child", "--config", config]);
  try {
    const [{ url }] = await once(child, "message");
    return await measureEach({ child, url, write });
  } finally {
    child.disconnect();
    rmSync(folder, { recursive: true });
  }
}

function configOf({ maxSlotPerHost = 5, idleSeconds = IDLE_SECONDS }) {
  return {
    listen: "127.0.0.1:0",
    internalApiToken: TOKEN,
    fairQueue: {
      maxSlotPerHost,
      sessionIdleSeconds: idleSeconds,
      leaseSeconds: 900,
      hosts: { "*.pattern.example": { maxSlotPerHost: 3 } },
      cleanup: { enabled: false },
    },
  };
}

async function measureEach({ child, url, write }) {
  const ask = async (method, path, body) => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(`${url}${path}`, init);
    await response.arrayBuffer();
    return response.status;
  };
  const measure = async (title, work, most = MOST_MS) => {
    if (!title.includes(values.only)) return true;
    const found = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      child.send("begin");
      await pause(50);
      const outcome = await work(round);
      await pause(100);
      child.send("end");
      const [{ maxMs, rssMb }] = await once(child, "message");
      found.push({ maxMs, rssMb, outcome });
    }
    const least = Math.min(...found.map(({ maxMs }) => maxMs));
    const all = found.map(({ maxMs }) => maxMs.toFixed(0)).join(", ");
    const { rssMb, outcome } = found.at(-1);
    const isMet = least <= most;
    console.log(
      `${title}: ${least.toFixed(0)} ms (${all})${isMet ? "" : ", TOO LONG"}; ${rssMb.toFixed(0)} MB; ${outcome ?? ""}`,
    );
    return isMet;
  };
  const results = [];
  const add = async (title, work, most) => results.push(await measure(title, work, most));

  const unread = "10,000 requests for /openapi.json on 5 connections that are not read";
  await add(unread, () => flood(url), FLOOD_MS);
  const startedAt = performance.now();
  await createHosts(url);
  console.log(`${HOSTS} hosts created in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  await add("nothing", () => pause(1_000));
  await add("an operator's call for an unknown host", (round) =>
    ask("POST", `/api/v0/hosts/${nameOf(HOSTS + round).replace("host", "hots")}/breaker`, { state: "open" }),
  );
  await add("an operator's call for a known host", () =>
    ask("POST", `/api/v0/hosts/${nameOf(7)}/breaker`, { state: "closed" }),
  );
  await add("a refresh with other limits", async (round) => {
    write({ maxSlotPerHost: 6 + round });
    const status = await ask("POST", "/api/v0/refresh");
    await pause(3_000);
    return status;
  });
  await add("SIGHUP with the same limits", async () => {
    child.kill("SIGHUP");
    await pause(3_000);
  });
  await add("the first page of /state", () => ask("GET", "/api/v0/state"));
  await add("a page of /state with 1000 hosts", () => ask("GET", "/api/v0/state?offset=50000&limit=1000"));
  await add("/state of one host", () => ask("GET", `/api/v0/state?host=${nameOf(7)}`));
  await add("/metrics", () => ask("GET", "/metrics"));
  await add("/history", () => ask("GET", "/api/v0/history"));
  await add("/instances", () => ask("GET", "/api/v0/instances"));
  await add("/events for 7 s", () => listen(url));
  await add("/readyz and /health", async () => [await ask("GET", "/readyz"), await ask("GET", "/api/v0/health")]);
  await add("/flush", () => ask("POST", "/api/v0/flush"));
  await add("a waiter for 3 s: beats", () => waitFor(ask));
  await add("a refresh that makes all hosts idle, and the hosts being forgotten", async (round) => {
    if (round > 0) return "only once";
    write({ idleSeconds: 2 });
    const status = await ask("POST", "/api/v0/refresh");
    await pause(25_000);
    return status;
  });
  return results.every(Boolean);
}

/** Names of 230 characters. */
function nameOf(at) {
  return `host-${String(at).padStart(8, "0")}-${"long-name-".repeat(20)}.example`;
}

/** By requests that do not wait for the answers before them. Every tenth host has a slot in use. */
async function createHosts(url) {
  const { port, hostname: address } = new URL(url);
  const request = (path, body) => {
    const text = JSON.stringify(body);
    return `POST /api/v0/fairqueue/${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  };
  const call = (at) =>
    at % 10 === 0
      ? request("acquire", { hostname: nameOf(at), bucket: "a", waitMs: 1_000 })
      : request("report", { hostname: nameOf(at), status: 200 });
  const lanes = Array.from({ length: 16 }, async (_, lane) => {
    const socket = connect(Number(port), address);
    for (let from = lane * 100; from < HOSTS; from += 1_600) {
      const calls = Array.from({ length: Math.min(100, HOSTS - from) }, (_, at) => call(from + at));
      socket.write(calls.join(""));
      let answered = 0;
      while (answered < calls.length) {
        const [chunk] = await once(socket, "data");
        answered += chunk.toString("latin1").split("HTTP/1.1 200 OK").length - 1;
      }
    }
    socket.destroy();
  });
  await Promise.all(lanes);
}

async function flood(url) {
  const { port, hostname } = new URL(url);
  const text = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2_000);
  const sockets = Array.from({ length: 5 }, () => {
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.write(text);
    return socket;
  });
  let longest = 0;
  for (let turn = 0; turn < 20; turn++) {
    const askedAt = performance.now();
    await (await fetch(`${url}/livez`)).arrayBuffer();
    longest = Math.max(longest, performance.now() - askedAt);
    await pause(50);
  }
  for (const socket of sockets) socket.destroy();
  return `/livez within ${longest.toFixed(0)} ms`;
}

async function listen(url) {
  const leaving = new AbortController();
  const response = await fetch(`${url}/api/v0/events`, {
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: leaving.signal,
  });
  await pause(7_000);
  leaving.abort();
  return response.status;
}

async function waitFor(ask) {
  const body = { hostname: "sem:one", limit: 1, waitMs: 3_000 };
  return Promise.all([1, 2].map(() => ask("POST", "/api/v0/fairqueue/acquire", body)));
}
