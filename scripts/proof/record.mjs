// Keeps the results of long programs (simulate, fuzz, soak, chaos, model, mutation) by commit, in `.proof/<commit>.jsonl`, which git ignores.
// Parts that ran on one commit count together, so a long run can be stopped and continued. `npm run reliability` writes the page from them.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const git = (...args) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();

/** The commit of the sources that run. With changes that are not committed, results belong to no commit. */
function commitNow() {
  const commit = git("rev-parse", "--short=12", "HEAD");
  const changed = git("status", "--porcelain", "--", "packages", "package-lock.json");
  return changed === "" ? commit : `${commit}-changed`;
}

const fileOf = (commit) => resolve(ROOT, ".proof", `${commit}.jsonl`);

export function record(kind, result) {
  mkdirSync(resolve(ROOT, ".proof"), { recursive: true });
  const line = JSON.stringify({ kind, at: new Date().toISOString(), ...result });
  appendFileSync(fileOf(commitNow()), `${line}\n`);
}

/** The results of one kind for the commit. */
export function recorded(kind, commit = commitNow()) {
  const file = fileOf(commit);
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line)).filter((result) => result.kind === kind);
}
