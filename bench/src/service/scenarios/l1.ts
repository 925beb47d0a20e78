import { setTimeout as pause } from "node:timers/promises";
import { Audit } from "../load/audit.ts";
import { Listeners } from "../load/listeners/listeners.ts";
import { cpuMs } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { median } from "../load/statistics.ts";
import { atLeast, atMost, type LoadContext, type Scenario } from "../scenario.ts";

const CLIENTS = 64;
const HOSTS = 400;
const LISTENERS = 100;
/** Begun, granted, released. */
const CHANGES_PER_CYCLE = 3;

interface Window {
  readonly perSecond: number;
  readonly cpuPerCycle: number;
}

/** Clients that go from host to host until told to stop; what they did in a window of time. */
class Load {
  readonly audit = new Audit({ slots: CLIENTS, slotsPerBucket: CLIENTS });
  readonly #context: LoadContext;
  #clients: readonly SlotClient[] = [];
  #next = 0;
  #isOver = false;

  constructor(context: LoadContext) {
    this.#context = context;
  }

  async start(): Promise<void> {
    const { url, waiting } = this.#context;
    this.#clients = await Promise.all(Array.from({ length: CLIENTS }, () => SlotClient.open(url, waiting)));
    for (const [at, client] of this.#clients.entries()) void this.#loop(client, `b${at}`).catch(() => {});
  }

  async window(ms: number): Promise<Window> {
    const [before, cpuBefore, startedAt] = [this.#next, cpuMs(this.#context.serverPid), performance.now()];
    await pause(ms);
    const cycles = this.#next - before;
    const cpu = cpuMs(this.#context.serverPid) - cpuBefore;
    return { perSecond: (cycles * 1000) / (performance.now() - startedAt), cpuPerCycle: (1000 * cpu) / cycles };
  }

  get cycles(): number {
    return this.#next;
  }

  stop(): void {
    this.#isOver = true;
    for (const client of this.#clients) client.close();
  }

  async #loop(client: SlotClient, bucket: string): Promise<void> {
    while (!this.#isOver) {
      const host = `h${this.#next++ % HOSTS}.example`;
      const slot = await client.acquire(host, bucket, () => this.#isOver);
      if (slot === undefined) return;
      this.audit.releasing(this.audit.granted(host, bucket, slot.fence, 0));
      await client.release(slot.slotToken);
    }
  }
}

export const l1: Scenario = {
  id: "L1",
  title: `${LISTENERS} listeners of /events against none: ${CLIENTS} clients over ${HOSTS} hosts, windows taken in turns`,
  subjects: ["slotkeeper"],
  fairQueue: { maxSlotPerHost: CLIENTS, maxSlotPerIp: 0, maxWaitersPerHost: 0 },
  async load(context) {
    const load = new Load(context);
    const listeners = new Listeners(context.url);
    await load.start();
    while (load.cycles < (context.isShort ? 2_000 : 20_000)) await pause(100);
    const [without, watched]: [Window[], Window[]] = [[], []];
    const windowMs = context.isShort ? 1_000 : 3_000;
    let bytes = 0;
    for (let turn = 0; turn < (context.isShort ? 2 : 8); turn++) {
      // Which comes first takes turns too: a machine that slows down must not favour either.
      for (const isWatched of turn % 2 === 0 ? [false, true] : [true, false]) {
        ({ bytes } = await listeners.set(isWatched ? LISTENERS : 0));
        await pause(300);
        (isWatched ? watched : without).push(await load.window(windowMs));
      }
    }
    ({ bytes } = await listeners.set(0));
    load.stop();
    listeners.close();
    const of = (windows: readonly Window[], kind: keyof Window) => median(windows.map((window) => window[kind]));
    return {
      "changes/s": CHANGES_PER_CYCLE * of(watched, "perSecond"),
      "cycles/s without": of(without, "perSecond"),
      "cycles/s with listeners": of(watched, "perSecond"),
      "throughput ratio": of(watched, "perSecond") / of(without, "perSecond"),
      "CPU per cycle ratio": of(watched, "cpuPerCycle") / of(without, "cpuPerCycle"),
      "kB/s sent": (bytes / 1000 / watched.length / windowMs) * 1000,
      violations: load.audit.violations,
    };
  },
  goals: [
    atLeast("slotkeeper", "throughput ratio", 0.95),
    atLeast("slotkeeper", "changes/s", 10_000),
    atMost("slotkeeper", "violations", 0),
  ],
};
