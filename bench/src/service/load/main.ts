/** Runs one load in its own process: `node load/main.js SCENARIO CONTEXT` prints its metrics as one line of JSON. */
import type { LoadContext } from "../scenario.ts";
import { scenarioById } from "../scenarios/index.ts";

const [id = "", context = "{}"] = process.argv.slice(2);
console.log(JSON.stringify(await scenarioById(id).load(JSON.parse(context) as LoadContext)));
process.exit(0);
