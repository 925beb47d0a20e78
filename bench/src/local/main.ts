/**
 * `npm run bench:local -- [options]`: slots on one machine, beside the usual ways. Commands write when they start and
 * end into a log, and only that log is judged. More commands at once than slots is an error: the process ends with 1.
 */
import { parseArgs } from "node:util";
import { Machine } from "@slotkeeper/testkit/one-machine";
import { Results } from "./results.ts";
import { ROWS, type Row } from "./rows.ts";
import { missing, SUBJECTS, type Subject } from "./subjects.ts";

const HELP = `Usage: npm run bench:local -- [options]

  --only ROWS       ${Object.keys(ROWS).join(", ")}, with commas between them (all)
  --subjects NAMES  ${SUBJECTS.map(({ id }) => id).join(", ")} (all)
  --kills N         kills of holders, and of wrappers, for Slotkeeper (1000); a third of it for the keeper
  --short           a smoke run, not a measurement
  --json FILE       keeps the results, and continues a run: what the file has is not measured again
  --write-docs      writes the table into docs/guides/one-machine.md
`;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: Object.keys(ROWS).join(",") },
    subjects: { type: "string", default: SUBJECTS.map(({ id }) => id).join(",") },
    kills: { type: "string" },
    short: { type: "boolean", default: false },
    json: { type: "string" },
    "write-docs": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}

const results = new Results(values.json);
const rows = values.only.split(",");
const subjects = values.subjects.split(",");
const kills = Number(values.kills ?? (values.short ? 30 : 1000));
let isViolated = false;

/** A line that is renewed on a terminal, and a line each ten seconds elsewhere. */
const PROGRESS_MS = 10_000;
let shownAt = Date.now();

function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${text}\u001b[K`);
  else if (Date.now() - shownAt > PROGRESS_MS) {
    shownAt = Date.now();
    process.stderr.write(`${text}\n`);
  }
}

// The commands that are measured are in groups of their own, so that the terminal does not end them.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void Machine.closeAll().then(() => process.exit(1)));
}

async function measure(id: string, row: Row, subject: Subject): Promise<void> {
  const startedAt = performance.now();
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
  const onProgress = (text: string) => progress(`${row.title}, ${subject.id}: ${text}, ${seconds()}`);
  try {
    const figures = await row.measure(subject, { isShort: values.short, kills, onProgress });
    results.put(id, subject.id, { figures });
    isViolated ||= subject.id === "slotkeeper" && row.isViolated(figures);
  } catch (error) {
    // A peer that fails is a result. Ours may not.
    if (subject.id === "slotkeeper") throw error;
    results.put(id, subject.id, { failure: (error as Error).message });
  }
  if (process.stderr.isTTY) progress("\r");
  const shown = `${results.text(id, subject.id)} (measured in ${seconds()})`;
  process.stdout.write(`${row.title.padEnd(56)} ${subject.id.padEnd(16)} ${shown}\n`);
}

const present = SUBJECTS.filter((subject) => subjects.includes(subject.id)).filter((subject) => {
  const why = missing(subject);
  if (why !== undefined) process.stdout.write(`${subject.id} is skipped: ${why}\n`);
  return why === undefined;
});
for (const [id, row] of Object.entries(ROWS)) {
  if (!rows.includes(id)) continue;
  for (const subject of present) {
    if (!row.subjects.includes(subject.id) || results.get(id, subject.id) !== undefined) continue;
    await measure(id, row, subject);
  }
}
if (values["write-docs"]) results.writeGuide();
process.exitCode = isViolated ? 1 : 0;
