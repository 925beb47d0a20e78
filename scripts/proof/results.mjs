// Adds up what was recorded, for the reliability page. The sums are checked in as results.json.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { FOLDER, readResults } from "./record.mjs";

const FILE = resolve(import.meta.dirname, "results.json");

export const readSums = () => JSON.parse(readFileSync(FILE, "utf8"));

/** Takes the new results into results.json. A result of another commit than before replaces the sum. */
export function collect() {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl")) : [];
  const sums = sumsOf(files.flatMap((name) => readResults(resolve(FOLDER, name))));
  for (const sum of readSums())
    if (!sums.some((other) => keyOf(other) === keyOf(sum) && other.at >= sum.at)) sums.push(sum);
  writeFileSync(FILE, `${JSON.stringify(newestOf(sums), undefined, 2)}\n`);
}

/** The newest sum of each kind and part. A kind has parts or one sum: the newer of the two replaces the other. */
export function newestOf(sums) {
  const [newest, hasParts] = [new Map(), new Map()];
  for (const sum of [...sums].sort(byTime)) {
    newest.set(keyOf(sum), sum);
    hasParts.set(sum.kind, sum.part !== undefined);
  }
  const kept = [...newest.values()].filter(({ kind, part }) => hasParts.get(kind) === (part !== undefined));
  return kept.sort((a, b) => keyOf(a).localeCompare(keyOf(b), "en"));
}

const byTime = (a, b) => a.at.localeCompare(b.at);
const keyOf = ({ kind, part = "" }) => `${kind} ${part}`;

/** One sum for each kind, part and commit. */
export function sumsOf(results) {
  const sums = new Map();
  for (const result of results.filter(({ amount }) => amount !== undefined).sort(byTime)) {
    const key = `${keyOf(result)} ${result.commit}`;
    sums.set(key, plus(result.isWhole ? undefined : sums.get(key), result));
  }
  return [...sums.values()].map((sum) => ({ ...sum, seconds: Math.round(sum.seconds) }));
}

/** A sum has failed if one of its parts has. */
function plus(sum, { kind, part, commit, at, machine, amount, unit, isPassed, seconds = 0, figures = {} }) {
  const names = Object.keys({ ...sum?.figures, ...figures });
  return {
    kind,
    ...(part !== undefined && { part }),
    commit,
    at,
    machine,
    amount: (sum?.amount ?? 0) + amount,
    unit,
    isPassed: (sum?.isPassed ?? true) && isPassed,
    seconds: (sum?.seconds ?? 0) + seconds,
    figures: Object.fromEntries(names.map((name) => [name, (sum?.figures?.[name] ?? 0) + (figures[name] ?? 0)])),
  };
}
