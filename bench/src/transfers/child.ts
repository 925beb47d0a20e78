/** One row in a process of its own: `node child.js SUBJECT BACKLOG [--short]` prints one line of JSON. */
import { measure } from "./scenario.ts";

const [subject = "", backlog = "0", mode] = process.argv.slice(2);
console.log(JSON.stringify(await measure(subject, Number(backlog), mode === "--short")));
// Thousands are still blocked; the figure is printed, nothing is worth waiting for.
process.exit(0);
