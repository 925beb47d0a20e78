/** The server: it reads every upload into memory and works on it for a moment, like a server that creates previews. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { isSlotkeeperError } from "slotkeeper";
import { MediaSlots } from "slotkeeper/transfers";

export const BUDGET_MB = 420;
const WORK_MS = 100;
const MB = 1024 ** 2;

export interface Sample {
  readonly type: "sample";
  readonly atMs: number;
  readonly rssMb: number;
  /** The number of uploads allowed now; without limits, all of them. */
  readonly limit: number;
  readonly inUse: number;
}

export type Report = Sample | { readonly type: "listening"; readonly port: number };

/** At most twelve uploads, two per user; fewer while memory is short. */
const slots = () =>
  new MediaSlots({
    memoryBased: false,
    fallbackGlobalUploads: 12,
    fallbackPerUserUploads: 2,
    availableGb: BUDGET_MB / 1024,
    // Marks below the defaults, because holders keep their memory after the limit has fallen.
    governor: { everyMs: 50, highWater: 0.7, lowWater: 0.55 },
  });

/** Reads an upload into one buffer of its declared length: chunks that are joined at the end take twice the memory. */
async function read(request: IncomingMessage): Promise<Buffer> {
  const body = Buffer.allocUnsafeSlow(Number(request.headers["content-length"]));
  let length = 0;
  for await (const chunk of request) length += (chunk as Buffer).copy(body, length);
  return body;
}

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await read(request);
  await sleep(WORK_MS);
  response.end(
    createHash("sha1")
      .update(body.subarray(0, 64 * 1024))
      .digest("hex"),
  );
}

/** Takes 144 MB in small steps: memory is resident once it is written to. */
const GROWS = `
  const { workerData: periodMs } = require("node:worker_threads");
  const block = Buffer.allocUnsafe(144 * 1024 ** 2);
  let at = 0;
  setInterval(() => {
    block.subarray(at, at + 8 * 1024 ** 2).fill(1);
    at += 8 * 1024 ** 2;
  }, periodMs / 18);
`;

/** Another part of the process: a thread that grows, and frees everything when it ends. */
async function growForAWhile(periodMs: number): Promise<void> {
  await sleep(periodMs);
  const thread = new Worker(GROWS, { eval: true, workerData: periodMs });
  await sleep(periodMs * 1.5);
  await thread.terminate();
}

const report = (report: Report): void => void process.send?.(report);

/** Reports to the parent until that sends a message or ends. */
export function serve(isLimited: boolean, isShort: boolean): void {
  const media = isLimited ? slots() : undefined;
  let active = 0;
  const server = createServer((request, response) => {
    const user = String(request.headers["x-user"]);
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const work = async (): Promise<void> => {
      active++;
      await take(request, response).finally(() => active--);
    };
    // An upload that waits for its slot is not read, so its bytes stay with the client.
    const taken = media === undefined ? work() : media.runUpload(user, work, { signal: gone.signal });
    taken.catch((error: unknown) => {
      response.statusCode = isSlotkeeperError(error) && error.retryable ? 503 : 500;
      response.end();
    });
  });
  server.listen(0, "127.0.0.1", () => report({ type: "listening", port: (server.address() as AddressInfo).port }));
  const startedAt = performance.now();
  const sampling = setInterval(() => {
    const limit = media?.config().current.globalUploads ?? active;
    const rssMb = process.memoryUsage.rss() / MB;
    report({ type: "sample", atMs: performance.now() - startedAt, rssMb, limit, inUse: active });
  }, 50);
  void growForAWhile(isShort ? 1000 : 2000);
  const end = (): void => {
    clearInterval(sampling);
    media?.close();
    process.exit(0);
  };
  process.once("message", end);
  process.once("disconnect", end);
}
