import type { Fleet, RoundRobinProxy } from "@slotkeeper/testkit/fleet";
import type { Holds } from "./holds.ts";

interface Seen {
  readonly granted: number;
  readonly at: number;
}

/** One line per instance, from its own metrics, and one for the whole fleet, as its clients see it. */
export class FleetTable {
  readonly #fleet: Fleet;
  readonly #proxy: RoundRobinProxy;
  readonly #holds: Holds;
  readonly #isTerminal: boolean;
  readonly #dashboard: string;
  readonly #seen = new Map<string, Seen>();
  #drawn = 0;

  constructor(fleet: Fleet, proxy: RoundRobinProxy, holds: Holds, more: { dashboard: string; isTerminal: boolean }) {
    this.#fleet = fleet;
    this.#proxy = proxy;
    this.#holds = holds;
    this.#dashboard = more.dashboard;
    this.#isTerminal = more.isTerminal;
  }

  async draw(): Promise<void> {
    const rows = await Promise.all(this.#fleet.processes.map(({ url, pid }, at) => this.#row(at, url, pid)));
    const { grantsPerSecond, utilisation, handOverP99Ms } = this.#holds.figures();
    const waiting = rows.reduce((sum, row) => sum + row.waiting, 0);
    const lines = [
      "",
      "  instance     pid   grants/s   waiting  address",
      ...rows.map(({ line }) => line),
      `  fleet              ${grantsPerSecond.toFixed(1).padStart(8)}  ${String(waiting).padStart(8)}  ${this.#proxy.url} (proxy)`,
      "",
      `  slots in use ${this.#holds.inUse}, utilisation ${utilisation.toFixed(2)}, hand-over p99 ${handOverP99Ms.toFixed(0)} ms, failed ${this.#holds.failed}`,
      `  dashboard    ${this.#dashboard}/      Ctrl-C ends everything`,
    ];
    if (this.#isTerminal && this.#drawn > 0) process.stdout.write(`\x1b[${this.#drawn}A`);
    this.#drawn = lines.length;
    process.stdout.write(lines.map((line) => `${this.#isTerminal ? "\x1b[2K" : ""}${line}\n`).join(""));
  }

  async #row(at: number, url: string, pid: number) {
    const head = `  ${String(at + 1).padEnd(8)}${String(pid).padStart(8)}`;
    const page = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(800) }).then(
      (answer) => answer.text(),
      () => undefined,
    );
    if (page === undefined) return { waiting: 0, line: `${head}          –         –  ${url} (no answer)` };
    const waiting = valueOf(page, "slotkeeper_held_polls");
    const now = { granted: valueOf(page, 'slotkeeper_sessions_ended_total{end="granted"}'), at: performance.now() };
    const before = this.#seen.get(url);
    this.#seen.set(url, now);
    const perSecond = before === undefined ? 0 : ((now.granted - before.granted) * 1000) / (now.at - before.at);
    return {
      waiting,
      line: `${head}  ${perSecond.toFixed(1).padStart(9)}  ${String(waiting).padStart(8)}  ${url}`,
    };
  }
}

function valueOf(page: string, series: string): number {
  const line = page.split("\n").find((text) => text.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? 0);
}
