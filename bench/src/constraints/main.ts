/**
 * `npm run bench:constraints -- [options]`: what constraints cost (S1 with a budget, keys and classes, beside plain S1),
 * and the same job beside limiters on Redis: three processes of which one is killed every five seconds. A limit of ours
 * that is exceeded is an error: the process ends with 1.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { THIS_CHECKOUT } from "@slotkeeper/testkit/fleet";
import { writeConstraintsPart } from "../page.ts";
import { roundsOf } from "../rounds.ts";
import { measureAll } from "../service/measure.ts";
import { BUILT_NAMES, CONSTRAINT_NAMES, s1With } from "../service/scenarios/s1-with.ts";
import { renderConstraintsPart } from "./docs.ts";
import type { Figures } from "./judge.ts";
import { casesOf, type Report, renderReport } from "./report.ts";
import { runSubject } from "./run.ts";
import { SUBJECTS, type SubjectId } from "./subjects.ts";

const ROWS = ["S1", ...SUBJECTS.map(({ id }) => id)];
const HELP = `Usage: npm run bench:constraints -- [options]

  --only ROWS       these rows, with commas between them: ${ROWS.join(", ")} (all)
  --with NAMES      the constraints of S1: ${CONSTRAINT_NAMES.join(", ")} (${BUILT_NAMES.join(", ")})
  --against FOLDER  another checkout with a build: plain S1 beside its service
  --rounds N        rounds of S1 (3; in short mode 1)
  --kills N         kills of a process in each run of a peer (6; in short mode 1)
  --short           a smoke run, not a measurement
  --json FILE       keeps the report
  --from FILE       shows a report that --json has kept, without measuring
  --write-docs      writes this part of docs/reference/benchmarks.md
  --help            shows this`;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: ROWS.join(",") },
    with: { type: "string", default: BUILT_NAMES.join(",") },
    against: { type: "string" },
    rounds: { type: "string" },
    kills: { type: "string" },
    short: { type: "boolean", default: false },
    json: { type: "string" },
    from: { type: "string" },
    "write-docs": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

const only = values.only.split(",");
const unknown = only.filter((row) => !ROWS.includes(row));
if (unknown.length > 0) {
  console.error(`Expected --only to name rows of ${ROWS.join(", ")}; got ${unknown.join(", ")}`);
  process.exit(2);
}

const commitOf = (folder: string) =>
  execFileSync("git", ["-C", folder, "rev-parse", "--short=8", "HEAD"], { encoding: "utf8" }).trim();

/** The machine is nearly idle while a subject runs, so two run at the same time. */
const AT_ONCE = 2;

async function measurePeers(kills: number): Promise<Pick<Report, "peers" | "skipped">> {
  const peers: { [id in SubjectId]?: Figures[] } = {};
  const skipped: { [id in SubjectId]?: string } = {};
  const left = SUBJECTS.filter(({ id }) => only.includes(id));
  // In the order of the table, whichever ends first.
  for (const { id } of left) peers[id] = [];
  const runNext = async () => {
    for (let subject = left.shift(); subject !== undefined; subject = left.shift()) {
      const why = subject.missing();
      process.stderr.write(`${subject.id}${why === undefined ? "" : ` is skipped: ${why}`}\n`);
      if (why === undefined) peers[subject.id]?.push(await runSubject(subject, kills));
      else {
        skipped[subject.id] = why;
        delete peers[subject.id];
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runNext));
  return { peers, skipped };
}

async function measured(): Promise<Report> {
  const { against, short: isShort } = values;
  const rounds = roundsOf(values.rounds, isShort, 3);
  const kills = Number(values.kills ?? (isShort ? 1 : 6));
  const { peers, skipped } = await measurePeers(kills);
  const scenario = s1With(values.with.split(","), against !== undefined);
  return {
    node: process.version,
    commit: commitOf(THIS_CHECKOUT),
    ...(against === undefined ? {} : { old: commitOf(against) }),
    isShort,
    rounds,
    ...(only.includes("S1")
      ? { s1: await measureAll(scenario, { isShort, rounds, against: against && resolve(against) }) }
      : {}),
    peers,
    skipped,
  };
}

const report = values.from === undefined ? await measured() : (JSON.parse(readFileSync(values.from, "utf8")) as Report);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, undefined, 2)}\n`);
console.log(renderReport(report));
if (values["write-docs"]) writeConstraintsPart(renderConstraintsPart(report));
const isViolated = casesOf(report).some(({ verdicts }) =>
  verdicts.some(({ text, outcome }) => outcome === "missed" && /slots over|violations/.test(text)),
);
if (isViolated) process.exitCode = 1;
