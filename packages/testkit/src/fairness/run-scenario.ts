import { VirtualClock } from "../simulator/virtual-clock.ts";
import { maxMin } from "./max-min.ts";
import { demandOf, type Group, type Scenario } from "./scenario.ts";
import { type SlotSource, type SourceName, sourceFor } from "./slot-source.ts";

export interface Outcome {
  /** The largest relative error of any group against the oracle, in any phase. */
  readonly worstError: number;
  readonly phases: readonly { readonly group: string; readonly got: number; readonly fair: number }[][];
  readonly holds: number;
  /** How often a slot was free although a waiter could have had it. */
  readonly idleMoments: number;
}

/** Runs a scenario and compares each group's slot-seconds with the max-min fair allocation, phase by phase. */
export async function runScenario(scenario: Scenario, sourceName: SourceName): Promise<Outcome> {
  const run = new ScenarioRun(scenario, sourceName);
  const phases: Outcome["phases"][number][] = [];
  for (let phase = 0; phase < scenario.phasesMs.length; phase++) phases.push(await run.phase(phase));
  run.close();
  const errors = phases.flat().map(({ got, fair }) => (fair === 0 ? 0 : Math.abs(got - fair) / fair));
  return { worstError: Math.max(...errors), phases, holds: run.holds, idleMoments: run.idleMoments };
}

class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #clock = new VirtualClock();
  readonly #source: SlotSource;
  readonly #used = new Map<string, number>();
  readonly #held = new Map<string, number>();
  readonly #waiting = new Map<string, number>();
  #usedAsOf = this.#clock.now();
  #present = new Set<Group>();
  #fresh = 0;
  holds = 0;
  idleMoments = 0;

  constructor(scenario: Scenario, sourceName: SourceName) {
    this.#scenario = scenario;
    this.#source = sourceFor(sourceName, scenario, this.#clock);
  }

  close(): void {
    this.#present.clear();
    this.#source.close();
  }

  async phase(index: number): Promise<{ group: string; got: number; fair: number }[]> {
    const { groups, phasesMs, slots } = this.#scenario;
    const wanted = groups.filter(({ phases }) => phases?.includes(index) ?? true);
    const newcomers = wanted.filter((group) => !this.#present.has(group));
    this.#present = new Set(wanted);
    for (const group of newcomers) this.#start(group);
    this.#used.clear();
    await this.#clock.run(phasesMs[index] as number, () => this.#check());
    this.#accrue();
    const cap = this.#scenario.cap ?? Number.POSITIVE_INFINITY;
    // A client that uses a new bucket each time is, at any moment, a bucket with a demand of one.
    const claims = wanted.flatMap((group) => {
      const claim = { group, weight: group.weight ?? 1, demand: demandOf(group, cap) };
      const count = group.isFreshBucketEach === true ? (group.clients ?? 0) : 1;
      return Array.from({ length: count }, () => ({ ...claim, demand: claim.demand / count }));
    });
    const shares = maxMin(slots, claims);
    return wanted.map((group) => ({
      group: group.name,
      got: this.#used.get(group.name) ?? 0,
      fair:
        (phasesMs[index] as number) *
        shares.reduce((sum, share, at) => (claims[at]?.group === group ? sum + share : sum), 0),
    }));
  }

  #start(group: Group): void {
    for (let client = 0; client < (group.clients ?? 0); client++) void this.#loop(group);
    if (group.everyMs !== undefined) this.#arrive(group, group.everyMs);
  }

  async #loop(group: Group): Promise<void> {
    while (this.#present.has(group)) await this.#once(group);
  }

  #arrive(group: Group, everyMs: number): void {
    if (!this.#present.has(group)) return;
    void this.#once(group);
    this.#clock.setTimer(() => this.#arrive(group, everyMs), everyMs);
  }

  async #once(group: Group): Promise<void> {
    const bucket = group.isFreshBucketEach === true ? `${group.name}-${this.#fresh++}` : group.name;
    this.#count(this.#waiting, bucket, 1);
    const slot = await this.#source.acquire(bucket);
    this.#count(this.#waiting, bucket, -1);
    this.#hold(group.name, bucket, 1);
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(resolve, group.holdMs);
    });
    this.#hold(group.name, bucket, -1);
    this.holds++;
    slot.release();
  }

  #hold(group: string, bucket: string, by: 1 | -1): void {
    this.#accrue();
    this.#count(this.#held, group, by);
    if (group !== bucket) this.#count(this.#held, bucket, by);
  }

  #accrue(): void {
    const elapsedMs = this.#clock.now() - this.#usedAsOf;
    this.#usedAsOf = this.#clock.now();
    if (elapsedMs === 0) return;
    for (const { name } of this.#scenario.groups) {
      const held = this.#held.get(name) ?? 0;
      if (held > 0) this.#used.set(name, (this.#used.get(name) ?? 0) + held * elapsedMs);
    }
  }

  #count(counts: Map<string, number>, key: string, by: number): void {
    const next = (counts.get(key) ?? 0) + by;
    if (next === 0) counts.delete(key);
    else counts.set(key, next);
  }

  /** Work conservation: after every step, no slot is free while a waiter may have it. */
  #check(): void {
    const { groups, slots, cap } = this.#scenario;
    const held = groups.reduce((sum, { name }) => sum + (this.#held.get(name) ?? 0), 0);
    if (held > slots) throw new Error(`${held} slots held of ${slots}`);
    if (held === slots) return;
    for (const bucket of this.#waiting.keys()) {
      if ((this.#held.get(bucket) ?? 0) < (cap ?? Number.POSITIVE_INFINITY)) this.idleMoments++;
    }
  }
}
