// Measures a group of the engine with the fast judge, and keeps a report for each file as Stryker does.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Judge } from "./judge.mjs";
import { FOLDER, GROUPS, reportOf } from "./mutation.mjs";

const ROOT = resolve(import.meta.dirname, "../..");
const sourceOf = (file) => readFileSync(resolve(ROOT, file), "utf8");

/** The results of a file are kept each time when this number of changes is judged. */
const KEPT_AFTER = 20;

const isFound = ({ status }) => status === "Killed" || status === "Timeout";
const identityOf = ({ location, mutatorName, replacement }) => JSON.stringify([location, mutatorName, replacement]);

/** What was found before in the same source is not judged again, unless `isAgain`. A file that was interrupted is continued. */
export async function measureEngine(group, files, { isAgain, isTimeOver }) {
  if (files.length === 0) return;
  const sources = new Map(files.map((file) => [file, sourceOf(file)]));
  const judge = await Judge.of(files, GROUPS[group].tests, resolve(FOLDER, `${group}.mjs`));
  for (const [file, source] of sources) {
    const part = `${reportOf(file)}.part`;
    const before = [...judgedIn(reportOf(file), file, source).filter(isFound), ...judgedIn(part, file, source)];
    const judged = new Map((isAgain ? [] : before).map((change) => [identityOf(change), change]));
    const mutants = [];
    for (const change of judge.changesOf(file)) {
      if (isTimeOver()) return judge.close();
      mutants.push(judged.get(identityOf(change)) ?? { ...change, ...(await judge.resultOf(change)) });
      if (mutants.length % KEPT_AFTER === 0) keep(part, file, source, mutants);
    }
    keep(reportOf(file), file, source, mutants);
    rmSync(part, { force: true });
    console.log(`${file}: ${mutants.length} changes, ${mutants.filter((one) => !isFound(one)).length} not found`);
  }
  await judge.close();
}

/** The changes that a report of the same source has. */
function judgedIn(path, file, source) {
  const report = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).files[file] : undefined;
  return report?.source === source ? report.mutants : [];
}

function keep(path, file, source, mutants) {
  const report = { schemaVersion: "2", files: { [file]: { language: "typescript", source, mutants } } };
  writeFileSync(path, JSON.stringify(report));
}
