import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ServeProcess } from "../../fleet/serve-process.ts";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget } from "../fuzz-target.ts";
import { damaged, oddJson, oddText, spoiled } from "../odd-values.ts";

const CONNECTIONS = 32;
const PER_CONNECTION = 32;
const SLOTS = 2;
/** A batch that is not answered by then hangs. */
const BATCH_MS = 60_000;
const API = "/api/v0/fairqueue";
const PATHS = [
  `${API}/acquire`,
  `${API}/release`,
  `${API}/renew`,
  `${API}/cancel`,
  `${API}/report`,
  "/livez",
  "/openapi.json",
  "/",
];
const INTERNAL = ["state", "history", "instances", "hosts/fuzz.example", "slots/x.1", "hosts/x/breaker"];

/** Tokens of earlier answers, to be used again, also damaged. */
class Tokens {
  readonly #kept: string[] = ["slot_x.y", "fq1.a.b.c"];

  keep(text: string): void {
    for (const [, token] of text.matchAll(/"(?:slotToken|queryToken)":"([^"]+)"/g)) {
      this.#kept.push(token as string);
      if (this.#kept.length > 200) this.#kept.splice(0, 100);
    }
  }

  pick(random: Random): string {
    const token = random.pick(this.#kept);
    return random.chance(0.2) ? Buffer.from(damaged(random, Buffer.from(token))).toString("latin1") : token;
  }
}

function messageOf(random: Random, tokens: Tokens): object {
  const names = { hostname: random.chance(0.8) ? "fuzz.example" : oddText(random), ipBucket: oddText(random) };
  const first = { ...names, waitMs: random.int(0, 1), requestId: oddText(random), throttleTimeWindowSeconds: 1 };
  switch (random.int(0, 3)) {
    case 0:
      return { queryToken: tokens.pick(random) };
    case 1:
      return { slotToken: tokens.pick(random), status: random.pick([200, 404, 503]), hitUpstreamAtMs: 1 };
    default:
      return first;
  }
}

interface Request {
  readonly bytes: Buffer;
  /** Not damaged: it is answered without further bytes. */
  readonly isWhole: boolean;
}

/** One request: mostly well formed HTTP with a spoiled message, sometimes hostile headers, sometimes damaged. */
function requestOf(random: Random, tokens: Tokens): Request {
  const isInternal = random.chance(0.1);
  const path = isInternal ? `/api/v0/internal/${random.pick(INTERNAL)}` : random.pick(PATHS);
  const message = random.chance(0.3) ? oddJson(random) : spoiled(random, messageOf(random, tokens), oddJson);
  const body = Buffer.from(random.chance(0.95) ? JSON.stringify(message) : oddText(random));
  const method = random.chance(0.9)
    ? path.includes("fairqueue")
      ? "POST"
      : "GET"
    : random.pick(["PUT", "DELETE", "HEAD"]);
  const odd = random.chance(0.2) ? `X-Odd-${random.int(0, 9)}: ${asHeader(oddText(random))}\r\n` : "";
  const head = `${method} ${path}${random.chance(0.1) ? `?${encodeURIComponent(asHeader(oddText(random)))}` : ""} HTTP/1.1\r\nHost: 127.0.0.1\r\n${odd}`;
  const whole = Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]);
  return random.chance(0.03)
    ? { bytes: Buffer.from(damaged(random, whole)), isWhole: false }
    : { bytes: whole, isWhole: true };
}

const asHeader = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, "?");

const MARK = Buffer.from("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");

/**
 * Sends the requests on one connection, and reads until the service has answered all whole ones before the first
 * damaged one, or has closed the connection. Then it ends the connection: the service would wait for the rest of a
 * damaged request.
 */
function exchange(port: number, requests: readonly Request[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const damagedAt = requests.findIndex(({ isWhole }) => !isWhole);
    const whole = damagedAt === -1 ? requests.length : damagedAt;
    const bytes = requests.map((request) => request.bytes);
    const socket: Socket = connect(port, "127.0.0.1");
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`No answer after ${BATCH_MS} ms`));
    }, BATCH_MS);
    socket
      .on("connect", () => socket.write(Buffer.concat([...bytes.slice(0, whole), MARK, ...bytes.slice(whole)])))
      .on("data", (chunk) => {
        text += chunk.toString("latin1");
        if (text.split("HTTP/1.1 ").length > whole + 1) socket.end();
      })
      .on("error", () => {})
      .on("close", () => {
        clearTimeout(timer);
        resolve(text);
      });
  });
}

/** HTTP 500, or any other status that means a fault of the service. 503 is a refusal. */
const FAULT = /HTTP\/1\.1 5(?!03)\d\d/;

export const httpTarget: FuzzTarget = {
  name: "http",
  title: "bodies, headers, tokens and paths over HTTP: no 500, no hang, no crash, the limit holds",
  batch: CONNECTIONS * PER_CONNECTION,
  share: 1,
  open: async () => {
    const folder = await mkdtemp(join(tmpdir(), "slotkeeper-fuzz-"));
    const file = join(folder, "config.json");
    const fairQueue = {
      maxSlotPerHost: SLOTS,
      maxSlotPerIp: -1,
      pollWindowMs: 1,
      maxWaitMs: 100,
      zombieTimeoutSeconds: 1,
    };
    await writeFile(
      file,
      JSON.stringify({ listen: "127.0.0.1:0", logLevel: "error", fairQueue, limits: { hosts: 500 } }),
    );
    const service = await ServeProcess.start(file);
    const port = Number(new URL(service.url).port);
    const tokens = new Tokens();
    const expectAlive = async (input: unknown) => {
      if (!service.isRunning) throw new FuzzFailure(`The service ended:\n${service.log.join("\n")}`, input);
      const response = await fetch(`${service.url}/api/v0/internal/state?host=fuzz.example`, {
        signal: AbortSignal.timeout(30_000),
      });
      const held = /"inFlight":(\d+)/.exec(await response.text())?.[1];
      if (Number(held ?? 0) > SLOTS) throw new FuzzFailure(`${held} of ${SLOTS} slots are held`, input);
    };
    return {
      tryBatch: async (random) => {
        const batches = Array.from({ length: CONNECTIONS }, () =>
          Array.from({ length: PER_CONNECTION }, () => requestOf(random, tokens)),
        );
        const answers = await Promise.all(batches.map((requests) => exchange(port, requests)));
        for (const [at, text] of answers.entries()) {
          const sent = shownBytes(batches[at] ?? []);
          if (FAULT.test(text)) throw new FuzzFailure(`The service answered ${FAULT.exec(text)?.[0]}`, sent);
          tokens.keep(text);
        }
        await expectAlive(shownBytes(batches.flat()));
      },
      memory: () => Promise.resolve(residentBytes(service.pid)),
      close: async () => {
        await service.kill();
        await rm(folder, { recursive: true });
      },
    };
  },
};

const shownBytes = (requests: readonly Request[]): string =>
  Buffer.concat(requests.map(({ bytes }) => bytes)).toString("latin1");

function residentBytes(pid: number): number {
  const pages = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1];
  return Number(pages) * 4096;
}
