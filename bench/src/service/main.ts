/**
 * `node bench/dist/service/main.js [--short] [--rounds N] [--only S1,S6] [--json FILE]`
 *
 * The service over real HTTP on loopback, beside a bare server and the seed's way. In each round the subjects of a
 * scenario take turns (A B C, B C A, …), each with a fresh server and a fresh load process. Misses are not errors: a
 * benchmark is not a test. A violated limit is: it ends the process with 1.
 */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { judge, type Report, renderReport, type ScenarioReport } from "./report.ts";
import type { LoadContext, Metrics, Scenario, SubjectId } from "./scenario.ts";
import { scenarioById, scenarios } from "./scenarios/index.ts";
import { startServer, waitingOf } from "./servers.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    json: { type: "string" },
  },
});

const LOAD = fileURLToPath(new URL("load/main.js", import.meta.url));
const isShort = values.short;
const rounds = Number(values.rounds ?? (isShort ? 1 : 5));
if (!Number.isInteger(rounds) || rounds < 1) {
  throw new RangeError(`Expected --rounds to be an integer of at least 1, got ${values.rounds}`);
}
const chosen = values.only === undefined ? scenarios : values.only.split(",").map(scenarioById);

async function measure(scenario: Scenario, subject: SubjectId): Promise<Metrics> {
  const server = await startServer(subject, scenario);
  try {
    const context: LoadContext = {
      url: server.url,
      serverPid: server.pid,
      subject,
      waiting: waitingOf(subject),
      isShort,
    };
    const { stdout } = await promisify(execFile)(process.execPath, [LOAD, scenario.id, JSON.stringify(context)]);
    return JSON.parse(stdout) as Metrics;
  } finally {
    await server.stop();
  }
}

async function measureAll(scenario: Scenario): Promise<ScenarioReport> {
  const { id, title, subjects } = scenario;
  const samples: Partial<Record<SubjectId, Metrics[]>> = Object.fromEntries(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    const at = round % subjects.length;
    for (const subject of [...subjects.slice(at), ...subjects.slice(0, at)]) {
      process.stderr.write(`${id} round ${round + 1}/${rounds} ${subject}\n`);
      samples[subject]?.push(await measure(scenario, subject));
    }
  }
  return { id, title, samples, verdicts: judge(scenario, samples) };
}

const reports: ScenarioReport[] = [];
const report: Report = { node: process.version, rounds, isShort, scenarios: reports };
for (const scenario of chosen) {
  reports.push(await measureAll(scenario));
  // After each: a run of half an hour that is cut short has measured something.
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
}
console.log(renderReport(report));
const isViolated = reports.some(({ verdicts }) =>
  verdicts.some((one) => /violations/.test(one.text) && one.measured > 0),
);
if (isViolated) process.exitCode = 1;
