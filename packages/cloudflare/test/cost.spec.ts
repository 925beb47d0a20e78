// What a grant costs, as workerd counts it: rows, requests, and time compared with the HTTP service with a journal.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Service } from "@slotkeeper/server";
import { expect, test } from "vitest";
import { startWorker, type TestWorker } from "./worker.ts";

const LIMITS = { maxSlotPerHost: 4, maxSlotPerIp: -1 };
const SCRIPT = `
  import { slotFetch, slotObject } from "@slotkeeper/cloudflare";
  import { SlotClient } from "@slotkeeper/client";
  const counts = { requests: 0, rowsWritten: 0, rowsRead: 0, alarms: 0 };
  const counted = (storage) => ({
    sql: {
      exec(query, ...values) {
        const cursor = storage.sql.exec(query, ...values);
        const rows = cursor.toArray();
        counts.rowsWritten += cursor.rowsWritten;
        counts.rowsRead += cursor.rowsRead;
        return rows;
      },
    },
    transactionSync: (work) => storage.transactionSync(work),
    setAlarm(at) { counts.alarms++; return storage.setAlarm(at); },
  });
  export class Slots extends slotObject(${JSON.stringify(LIMITS)}) {
    constructor(ctx, env) { super({ id: ctx.id, storage: counted(ctx.storage), waitUntil: (p) => ctx.waitUntil(p) }, env); }
    fetch(request) { counts.requests++; return super.fetch(request); }
  }
  export default {
    async fetch(request, env) {
      const { searchParams } = new URL(request.url);
      const [clients, grants] = [Number(searchParams.get("clients")), Number(searchParams.get("grants"))];
      const service = searchParams.get("service");
      const keeper = service ? new SlotClient({ url: service }) : new SlotClient({ url: "http://slots", fetch: slotFetch(env.SLOTS) });
      // The first grant creates the tables and reports the host.
      await keeper.run({ hostname: "upstream.example.com" }, () => {});
      for (const name in counts) counts[name] = 0;
      const startedAt = Date.now();
      const client = async (at) => {
        for (let left = grants / clients; left > 0; left--)
          await keeper.run({ hostname: "upstream.example.com", bucket: "b" + at }, () => scheduler.wait(clients === 1 ? 0 : 2));
      };
      await Promise.all(Array.from({ length: clients }, (_, at) => client(at)));
      return Response.json({ ...counts, tookMs: Date.now() - startedAt });
    },
  };
`;

interface Counts {
  readonly requests: number;
  readonly rowsWritten: number;
  readonly rowsRead: number;
  readonly alarms: number;
  readonly tookMs: number;
}

async function measure({ ask }: TestWorker, clients: number, grants: number, service = ""): Promise<Counts> {
  return (await (await ask(`/?clients=${clients}&grants=${grants}&service=${service}`)).json()) as Counts;
}

/** `npm run cloudflare -- cost` prints more exact figures. */
const GRANTS = Number(process.env["SLOTKEEPER_COST_GRANTS"] ?? 120);

const ROUNDS = 5;

function perGrant({ requests, rowsWritten, rowsRead, tookMs }: Counts) {
  const [written, read] = [rowsWritten / GRANTS, rowsRead / GRANTS];
  return { requests: requests / GRANTS, rowsWritten: written, rowsRead: read, ms: tookMs / GRANTS };
}

test("a grant and its release cost two requests and two rows; under contention no more", async () => {
  const worker = await startWorker({ script: SCRIPT });
  const alone = perGrant(await measure(worker, 1, GRANTS));
  const contended = perGrant(await measure(worker, 40, GRANTS));
  console.log(`per grant: ${JSON.stringify({ alone, contended })}`);
  expect(alone.requests).toBe(2);
  expect(alone.rowsWritten).toBeLessThanOrEqual(2.1);
  expect(contended.requests).toBeLessThanOrEqual(2.5);
  expect(contended.rowsWritten).toBeLessThanOrEqual(2.1);
});

test("a grant takes at most a few times as long as from the HTTP service with a journal", async () => {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-cost-"));
  const service = await Service.start({
    flags: { listen: "127.0.0.1:0", fairQueue: LIMITS, backend: { memory: { journal: join(folder, "journal") } } },
    environment: {},
    log: { write: () => true, isJson: true, hasColours: false },
  });
  try {
    const worker = await startWorker({ script: SCRIPT, storage: join(folder, "objects") });
    const ratios: number[] = [];
    // In turns, so that other work on the machine slows both.
    for (let round = 0; round < ROUNDS; round++) {
      const [object, http] = [await measure(worker, 1, GRANTS), await measure(worker, 1, GRANTS, service.url)];
      console.log(`ms per grant: object ${object.tookMs / GRANTS}, service ${http.tookMs / GRANTS}`);
      ratios.push(object.tookMs / http.tookMs);
    }
    const ratio = ratios.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    console.log(`the object takes ${ratio?.toFixed(2)} times as long (median of ${ROUNDS} rounds)`);
    expect(ratio).toBeLessThan(10);
  } finally {
    await service.stop({ graceMs: 0, deadlineMs: 500 });
    await rm(folder, { recursive: true });
  }
});
