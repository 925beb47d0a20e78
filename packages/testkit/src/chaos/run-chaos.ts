import { loadavg } from "node:os";
import { Fleet } from "../fleet/fleet.ts";
import { RoundRobinProxy } from "../fleet/round-robin-proxy.ts";
import type { HistoryLine } from "../history/line.ts";
import { canLimitData, type PostgresOptions } from "../postgres/postgres-server.ts";
import { Random } from "../random/random.ts";
import { ChaosLoad, FAIR_QUEUE, QUIET_HOSTS, SLOTS } from "./chaos-load.ts";
import { FAULT_NAMES, FAULTS, type Fault, type FaultName } from "./faults.ts";
import { isUtilised, longestIdle, longestStall, utilisation } from "./figures.ts";
import { History } from "./history.ts";
import { InstanceCounts } from "./instance-counts.ts";
import { judgeRun, linesOf, type RunFacts } from "./judge-run.ts";
import { LagMeter } from "./lag-meter.ts";
import { type ChaosReport, type FaultRun, reportOf } from "./report.ts";
import type { World } from "./world.ts";

export interface ChaosOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly faults?: readonly FaultName[];
  /** How often each fault must happen: the run continues until then, for at most half of its time longer. */
  readonly each?: number;
  /** How soon the hot host must be in full use after a fault, in milliseconds. */
  readonly recoveryMs: number;
  /** Adds a client that breaks the contract, to show that the checker finds it. */
  readonly plant?: "overstay" | undefined;
  /** Ends the run early. What has happened so far is checked. */
  readonly signal?: AbortSignal;
  readonly log: (line: string) => void;
  /** Gets the lines of the history that was judged. */
  readonly onHistory?: (lines: readonly HistoryLine[]) => void;
}

const INSTANCES = 3;
/** A slot may be free for this long before the checker objects. The recovery from faults has its own bound. */
const PROMPT_MS = 10_000;
const FACTS: RunFacts = { fairQueue: FAIR_QUEUE, instances: INSTANCES, promptMs: PROMPT_MS };
/**
 * No commit may be lost if the server crashes. That would be another fault, which no lock service survives without
 * damage.
 */
const POSTGRES: PostgresOptions = { isDurable: true };
const LIMITED: PostgresOptions = {
  dataLimitMb: 384,
  isDurable: true,
  settings: { min_wal_size: "32MB", max_wal_size: "96MB" },
};
const NO_LIMIT = "this machine does not let us mount a file system of limited size (that takes Linux and root)";

/** How long the hot host is watched after a fault: at least, and at most beyond the bound. */
const WATCHED_MS = 3_500;
const PATIENCE_MS = 25_000;
const DRAINED_MS = 45_000;
/** How much longer than requested a run may take until every fault has happened often enough. */
const OVERTIME = 1.5;

/** Starts a fleet under load, causes one fault after the other, and checks what its clients saw. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, log, signal } = options;
  const random = new Random(seed);
  const isLimited = canLimitData();
  const faults = (options.faults ?? FAULT_NAMES).filter((name) => isLimited || !needsLimit(name));
  const skipped = (options.faults ?? FAULT_NAMES).flatMap((name) =>
    faults.includes(name) ? [] : [{ name, reason: NO_LIMIT }],
  );
  const fleet = await Fleet.start({
    instances: INSTANCES,
    fairQueue: FAIR_QUEUE,
    hasWays: true,
    postgres: isLimited ? LIMITED : POSTGRES,
  });
  const proxy = await RoundRobinProxy.start(fleet.urls);
  const history = new History();
  const load = new ChaosLoad(proxy.url, history, new Random(random.int(0, 2 ** 31)));
  const counts = new InstanceCounts();
  const world: World = { fleet, proxy, load, random, counts, pause: (ms) => pauseUntil(ms, signal) };
  const runs: FaultRun[] = [];
  const startedAt = performance.now();
  try {
    load.start();
    await untilFullUse(history, world);
    const warmAt = performance.now();
    await world.pause(3_000);
    const baseline = utilisation(history.sessions, SLOTS, warmAt, performance.now());
    log(`${INSTANCES} instances, seed ${seed}, utilisation ${baseline.toFixed(2)} before the first fault`);
    if (options.plant === "overstay") load.plantOverstay();
    const failure = await breakThings(world, history, faults, options, runs);
    log(failure ?? "no more faults: open sessions come to their end");
    await load.stop(DRAINED_MS);
    const seconds = (performance.now() - startedAt) / 1000;
    history.recorder.close();
    options.onHistory?.(linesOf(history.recorder.lines, FACTS, runs));
    const verdict = judgeRun(history.recorder.lines, FACTS, runs);
    const loadAverage = loadavg()[0] ?? 0;
    return reportOf({
      options,
      history,
      asked: faults,
      runs,
      skipped,
      failure,
      verdict,
      counts: await counts.compare(fleet.processes, verdict.counts),
      seconds,
      baseline,
      loadAverage,
    });
  } finally {
    load.kill();
    proxy.close();
    await fleet.stop();
  }
}

/**
 * Runs rounds of all faults, each in a new order. It ends when the time is over and each fault has happened `each`
 * times: a busy machine causes fewer in the same time. A fault that cannot be caused ends the run.
 */
async function breakThings(
  world: World,
  history: History,
  faults: readonly FaultName[],
  options: ChaosOptions,
  runs: FaultRun[],
): Promise<string | undefined> {
  const { seconds, each = 0, recoveryMs, signal, log } = options;
  const startedAt = performance.now();
  const lag = new LagMeter();
  try {
    for (let made = 0; ; made++) {
      for (const name of shuffled(faults, world.random)) {
        const share = (performance.now() - startedAt) / (seconds * 1000);
        if (signal?.aborted || share >= OVERTIME || (share >= 1 && made >= each)) return undefined;
        const run = await runFault(world, history, name, recoveryMs, lag);
        if (signal?.aborted) return undefined;
        runs.push(run);
        log(lineOf(run, history));
      }
    }
  } catch (error) {
    return (error as Error).message;
  } finally {
    lag.stop();
  }
}

async function runFault(
  world: World,
  history: History,
  name: FaultName,
  boundMs: number,
  lag: LagMeter,
): Promise<FaultRun> {
  const fault: Fault = FAULTS[name];
  lag.restart();
  const stalled = fault.stalls?.(world.random);
  const linesSince = history.recorder.lines.length;
  const startedAt = performance.now();
  await fault.run(world, stalled).catch((error: Error) => {
    throw new Error(`${name} could not be caused: ${error.message}`);
  });
  const endedAt = performance.now();
  await world.pause(WATCHED_MS);
  const recoversWithinMs = fault.recoversWithinMs ?? boundMs;
  await untilFullUse(history, world, recoversWithinMs + PATIENCE_MS);
  const watchedUntil = performance.now();
  const from = fault.countsFrom === "start" ? startedAt : endedAt;
  const stopsAll = fault.countsFrom === "end" && stalled === undefined;
  return {
    name,
    startedAt,
    endedAt,
    watchedUntil,
    recoveredMs: longestIdle(history.sessions, SLOTS, from, watchedUntil),
    recoversWithinMs,
    lagMs: lag.totalMs,
    stallMs: stopsAll ? undefined : longestStall(history, QUIET_HOSTS, stalled, startedAt, watchedUntil),
    failedCalls: history.failedCalls.filter(({ at }) => at >= startedAt).length,
    isFailingFree: fault.failsNoRequest === true,
    linesSince,
  };
}

/** Waits until the hot host is in full use. */
async function untilFullUse(history: History, { pause }: World, withinMs = PATIENCE_MS): Promise<void> {
  const until = performance.now() + withinMs;
  while (performance.now() < until && !isUtilised(history.sessions, SLOTS, performance.now())) await pause(200);
}

function lineOf(
  { name, recoveredMs, stallMs, failedCalls, startedAt, endedAt, linesSince }: FaultRun,
  history: History,
) {
  // What depends on sessions from before the fault is judged at the end.
  const { promptMs: _, ...facts } = FACTS;
  const violations = judgeRun(history.recorder.lines.slice(linesSince), facts).violations.length;
  const stall = stallMs === undefined ? "" : `, other hosts waited at most ${stallMs.toFixed(0)} ms`;
  const took = ((endedAt - startedAt) / 1000).toFixed(1);
  return `${name} (${took} s): idle for ${(recoveredMs / 1000).toFixed(1)} s${stall}, ${failedCalls} failed calls, ${violations} violations`;
}

function needsLimit(name: FaultName): boolean {
  const fault: Fault = FAULTS[name];
  return fault.needsLimitedData === true;
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at--) {
    const other = random.int(0, at);
    [order[at], order[other]] = [order[other] as T, order[at] as T];
  }
  return order;
}

function pauseUntil(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, signal?.aborted ? 0 : ms);
    signal?.addEventListener("abort", end);
  });
}
