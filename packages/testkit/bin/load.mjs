#!/usr/bin/env node
// Creates live load on a running service, to look at the dashboard or at `slotkeeper top`:
//   npm run load -- --url http://127.0.0.1:8080 [--hosts 1000] [--waiters 10000] [--seconds 60]
import { parseArgs } from "node:util";
import { DEMO_PLAN, fillQueue, Load, manyHosts } from "../dist/load/index.js";

const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8080" },
    key: { type: "string" },
    hosts: { type: "string", default: "0" },
    waiters: { type: "string", default: "0" },
    seconds: { type: "string", default: "0" },
  },
});
const wholeNumber = (name) => {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 0) return value;
  console.error(`Expected --${name} to be a whole number of at least 0, got ${JSON.stringify(values[name])}`);
  process.exit(2);
};
const [hosts, waiters, seconds] = ["hosts", "waiters", "seconds"].map(wholeNumber);
const target = { url: values.url, ...(values.key === undefined ? {} : { headers: { "X-FQ-Auth": values.key } }) };

const load = new Load(target, [...DEMO_PLAN, ...manyHosts(hosts)]);
console.log(`Load on ${values.url}: ${DEMO_PLAN.length + hosts} hosts. Stop with Ctrl-C.`);
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
