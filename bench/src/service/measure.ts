/** Measures the subjects of a scenario in turns, each with a fresh server and a fresh load process. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { THIS_CHECKOUT } from "@slotkeeper/testkit/fleet";
import { rotated } from "../harness.ts";
import { pin } from "./pinning.ts";
import { resultOf, type ScenarioResult } from "./report.ts";
import type { LoadContext, Metrics, Scenario, SubjectId } from "./scenario.ts";
import { startServer, waitingOf } from "./servers.ts";

const LOAD = fileURLToPath(new URL("load/main.js", import.meta.url));

export interface Measuring {
  readonly isShort: boolean;
  readonly rounds: number;
  /** The rounds that an earlier run took. */
  readonly before?: ScenarioResult["samples"] | undefined;
  /** The checkout of the subjects whose names end with `-old`. */
  readonly against?: string | undefined;
}

async function measure(scenario: Scenario, subject: SubjectId, { isShort, against }: Measuring): Promise<Metrics> {
  const server = await startServer(subject, scenario, subject.endsWith("-old") ? against : THIS_CHECKOUT);
  try {
    const waiting = waitingOf(subject);
    const context: LoadContext = { url: server.url, serverPid: server.pid, subject, waiting, isShort };
    const load = promisify(execFile)(process.execPath, [LOAD, scenario.id, JSON.stringify(context)]);
    const pins = scenario.isPinned === true ? [pin(server.pid, "server"), pin(load.child.pid, "load")] : [];
    const [{ stdout }] = await Promise.all([load, ...pins]);
    return JSON.parse(stdout) as Metrics;
  } finally {
    await server.stop();
  }
}

export async function measureAll(scenario: Scenario, measuring: Measuring): Promise<ScenarioResult> {
  const { id, subjects } = scenario;
  const { rounds, before = {} } = measuring;
  const samples: Partial<Record<SubjectId, Metrics[]>> = Object.fromEntries(
    subjects.map((subject) => [subject, [...(before[subject] ?? [])]]),
  );
  const runRound = async (round: number) => {
    for (const subject of rotated(subjects, round)) {
      if (round < (before[subject]?.length ?? 0)) continue;
      if (round > 0 && scenario.forComparison?.includes(subject) === true) continue;
      process.stderr.write(`${id} round ${round + 1}/${rounds} ${subject}\n`);
      samples[subject]?.push(await measure(scenario, subject, measuring));
    }
  };
  const all = Array.from({ length: rounds }, (_, round) => round);
  if (scenario.isLight === true) await Promise.all(all.map(runRound));
  else for (const round of all) await runRound(round);
  return resultOf(scenario, samples);
}
