/**
 * Measures one case for one subject in a fresh process: `node child.js CASE SUBJECT [--short]` prints one line of JSON.
 */
import { loadSubject } from "./subjects/index.ts";
import { yardsticksOf } from "./workload.ts";
import { caseById } from "./workloads/index.ts";

const [caseId = "", subjectId = "", mode] = process.argv.slice(2);
const chosen = caseById(caseId);
const subject = yardsticksOf(chosen).find((candidate) => candidate.id === subjectId) ?? (await loadSubject(subjectId));
await chosen.check?.(subject);
console.log(JSON.stringify(await chosen.measure(subject, mode === "--short")));
// Libraries may leave timers behind. The figure is printed, so there is nothing to wait for.
process.exit(0);
