import { setTimeout as pause } from "node:timers/promises";
import { median } from "../../timing.ts";
import { Audit } from "../load/audit.ts";
import { Listeners } from "../load/listeners/listeners.ts";
import { cpuMs } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { atLeast, atMost, type LoadContext, type Scenario } from "../scenario.ts";

const CLIENTS = 64;
const HOSTS = 400;
const LISTENERS = 100;
const WINDOW_MS = 1_000;
/** Begun, granted, released. */
const CHANGES_PER_CYCLE = 3;

interface Window {
  readonly perSecond: number;
  readonly cpuPerCycle: number;
}

/** Clients that use one host after the other until they are stopped, and their counts in a window of time. */
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
  fairQueue: { maxSlotPerHost: CLIENTS, maxSlotPerIp: -1, maxWaitersPerHost: 0 },
  async load(context) {
    const load = new Load(context);
    const listeners = new Listeners(context.url);
    await load.start();
    while (load.cycles < (context.isShort ? 2_000 : 20_000)) await pause(100);
    const pairs: { readonly without: Window; readonly watched: Window }[] = [];
    for (let turn = 0; turn < (context.isShort ? 2 : 16); turn++) {
      // The first one alternates, too, so that a machine that slows down favours neither.
      const taken = new Map<boolean, Window>();
      for (const isWatched of turn % 2 === 0 ? [false, true] : [true, false]) {
        await listeners.set(isWatched ? LISTENERS : 0);
        await pause(200);
        taken.set(isWatched, await load.window(WINDOW_MS));
      }
      pairs.push({ without: taken.get(false) as Window, watched: taken.get(true) as Window });
    }
    load.stop();
    listeners.close();
    const ratio = (kind: keyof Window) => median(pairs.map(({ without, watched }) => watched[kind] / without[kind]));
    const perSecond = median(pairs.map(({ watched }) => watched.perSecond));
    return {
      "changes/s": CHANGES_PER_CYCLE * perSecond,
      "cycles/s with listeners": perSecond,
      "throughput ratio": ratio("perSecond"),
      "CPU per cycle ratio": ratio("cpuPerCycle"),
      violations: load.audit.violations,
    };
  },
  goals: [
    atLeast("slotkeeper", "throughput ratio", 0.95),
    atMost("slotkeeper", "CPU per cycle ratio", 1.05),
    atMost("slotkeeper", "violations", 0),
  ],
};
