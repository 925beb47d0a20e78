// Measures a group of the engine with the fast judge, and keeps a report for each file as Stryker does.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Judge } from "./judge.mjs";
import { FOLDER, GROUPS, reportOf } from "./mutation.mjs";

const ROOT = resolve(import.meta.dirname, "../..");
const sourceOf = (file) => readFileSync(resolve(ROOT, file), "utf8");

/** What was found before in the same source is not judged again, unless `isAgain`. Ends with the file in which the time is over. */
export async function measureEngine(group, files, { isAgain, isTimeOver }) {
  if (files.length === 0) return;
  const sources = new Map(files.map((file) => [file, sourceOf(file)]));
  const judge = await Judge.of(files, GROUPS[group].tests, resolve(FOLDER, `${group}.mjs`));
  for (const [file, source] of sources) {
    if (isTimeOver()) break;
    const before = isAgain ? new Map() : foundBefore(file, source);
    const mutants = [];
    for (const change of judge.changesOf(file))
      mutants.push(before.get(identityOf(change)) ?? { ...change, ...(await judge.resultOf(change)) });
    const report = { schemaVersion: "2", files: { [file]: { language: "typescript", source, mutants } } };
    writeFileSync(reportOf(file), JSON.stringify(report));
    console.log(`${file}: ${mutants.length} changes, ${mutants.filter((one) => !isFound(one)).length} not found`);
  }
  await judge.close();
}

const isFound = ({ status }) => status === "Killed" || status === "Timeout";
const identityOf = ({ location, mutatorName, replacement }) => JSON.stringify([location, mutatorName, replacement]);

function foundBefore(file, source) {
  const report = existsSync(reportOf(file)) ? JSON.parse(readFileSync(reportOf(file), "utf8")).files[file] : undefined;
  const found = report?.source === source ? report.mutants.filter(isFound) : [];
  return new Map(found.map((change) => [identityOf(change), change]));
}
