// Keeps the results of long programs by the commit of the sources that ran, in `.proof/<commit>.jsonl`, which git ignores. Parts that
// ran on one commit count together, so a long run can be stopped and continued. `npm run reliability` adds them up (results.mjs) and
// writes the page.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
/** Where the results are kept. */
export const FOLDER = resolve(ROOT, ".proof");
const git = (...args) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

const CHANGED = "-changed";
/** The packages that a kind of run executes, if it does not execute all. */
const ENGINE = ["core", "protocol", "queue", "testkit"];
const PACKAGES = { simulate: ENGINE, reference: ENGINE, mutation: ENGINE };
/** Not tests, pages and scripts: a run goes on after they change. */
const sourcesOf = (kind) => [
  ...(PACKAGES[kind] ?? ["*"]).flatMap((name) => ["src", "sql", "bin"].map((folder) => `packages/${name}/${folder}/*`)),
  "package-lock.json",
];

const commitsAtStart = new Map();
/**
 * The last commit that changed the sources that run, as they are when the program starts. With changes that are not committed, results
 * belong to no commit.
 */
function ownCommit(kind) {
  if (!commitsAtStart.has(kind)) {
    const sources = sourcesOf(kind);
    const commit = git("log", "-1", "--format=%h", "--abbrev=12", "--", ...sources);
    const changed = git("status", "--porcelain", "--", ...sources);
    commitsAtStart.set(kind, changed === "" ? commit : `${commit}${CHANGED}`);
  }
  return commitsAtStart.get(kind);
}

function machineNow() {
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} × ${cpus()[0]?.model ?? "unknown"}, ${memory} GB, Node ${process.versions.node}`;
}

const fileOf = (commit) => resolve(FOLDER, `${commit}.jsonl`);

/**
 * Keeps one result:
 * - `part`: what was tried, if a kind has several: a target, a group, a variant.
 * - `amount`, `unit`: how much was tried, for example 10000 and "seeds".
 * - `isPassed`, and `seconds` unless the result is collected over several runs.
 * - `isWhole`: a repetition replaces this result. Otherwise the amounts of one commit add up.
 * - `figures`: numbers to show, by their name. They add up as the amount does.
 * Other fields are for the program itself, which may read them back with `recorded`.
 */
export function record(kind, result) {
  mkdirSync(FOLDER, { recursive: true });
  const commit = ownCommit(kind);
  const line = JSON.stringify({ kind, commit, at: new Date().toISOString(), machine: machineNow(), ...result });
  appendFileSync(fileOf(commit), `${line}\n`);
}

/** The results of one kind for the commit of this program, which then need no repetition: none with changes that are not committed. */
export function recorded(kind) {
  const commit = ownCommit(kind);
  return commit.endsWith(CHANGED) ? [] : readResults(fileOf(commit)).filter((result) => result.kind === kind);
}

export function readResults(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}
