#!/usr/bin/env node
// Creates live load on a running service, to look at the dashboard or at `slotkeeper top`.
import { parseArgs } from "node:util";
import { DEMO_PLAN, fillQueue, Load, manyHosts } from "../dist/load/index.js";

const HELP = `npm run load: puts load on a running service, to look at the dashboard or at \`slotkeeper top\`.

Usage
  npm run load -- [--url URL] [--token KEY] [--hosts N] [--waiters N] [--seconds S]

Options
  --url URL     address of the service; default: SLOTKEEPER_URL, else http://127.0.0.1:8080
  --token KEY   the shared key of callers; default: SLOTKEEPER_TOKEN
  --hosts N     as many hosts beside the ${DEMO_PLAN.length} of the demonstration, each with little load; default 0
  --waiters N   as many sessions that wait at one host, crowded.example; default 0
  --seconds S   stop after this time; default 0: run until Ctrl-C
  --help        show this text

Example
  npm run load -- --hosts 1000 --waiters 10000
`;

const { SLOTKEEPER_URL = "http://127.0.0.1:8080", SLOTKEEPER_TOKEN = "" } = process.env;

function flags() {
  try {
    return parseArgs({
      options: {
        url: { type: "string", default: SLOTKEEPER_URL },
        token: { type: "string", default: SLOTKEEPER_TOKEN },
        hosts: { type: "string", default: "0" },
        waiters: { type: "string", default: "0" },
        seconds: { type: "string", default: "0" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\nRun \`npm run load -- --help\` for its options.`);
    process.exit(2);
  }
}

const values = flags();
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const wholeNumber = (name) => {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 0) return value;
  console.error(`Expected --${name} to be a whole number of at least 0, got ${JSON.stringify(values[name])}`);
  process.exit(2);
};
const [hosts, waiters, seconds] = ["hosts", "waiters", "seconds"].map(wholeNumber);
const target = { url: values.url, ...(values.token === "" ? {} : { headers: { "X-FQ-Auth": values.token } }) };

const load = new Load(target, [...DEMO_PLAN, ...manyHosts(hosts)]);
console.log(`Load on ${target.url}: ${DEMO_PLAN.length + hosts} hosts. Stop with Ctrl-C.`);
if (waiters > 0) {
  await fillQueue(target, "crowded.example", waiters);
  console.log(`${waiters} sessions wait at crowded.example.`);
}
const report = setInterval(() => {
  const { granted, rejected, errors } = load.counts;
  console.log(`granted ${granted}, rejected ${rejected}, errors ${errors}`);
}, 5_000);
const stop = async () => {
  clearInterval(report);
  await load.stop();
};
process.once("SIGINT", () => void stop());
process.once("SIGTERM", () => void stop());
if (seconds > 0) setTimeout(() => void stop(), seconds * 1000);
