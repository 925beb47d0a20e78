/**
 * A process of the comparison: `node worker.js SUBJECT ADDRESS RECORDER SEED [fill]`. Every user asks again and again.
 * With `fill`, it takes every slot once and keeps it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Random } from "@slotkeeper/testkit/random";
import type { OpenGate } from "./gate.ts";
import { openBottleneck } from "./gates/bottleneck.ts";
import { openBullmq, openBullmqByTenant } from "./gates/bullmq.ts";
import { openEffect } from "./gates/effect.ts";
import { openSlotkeeper } from "./gates/slotkeeper.ts";
import { FILLING, JOBS, type Job, outcomeOf } from "./job.ts";
import { Reporter } from "./reporter.ts";
import type { SubjectId } from "./subjects.ts";

const GATES: { readonly [id in SubjectId]: OpenGate } = {
  slotkeeper: openSlotkeeper,
  "slotkeeper-fleet": openSlotkeeper,
  bullmq: openBullmq,
  "bullmq-by-tenant": openBullmqByTenant,
  bottleneck: openBottleneck,
  effect: openEffect,
};

const [subject = "", address = "", recorder = "", seed = "", mode] = process.argv.slice(2);
const isFilling = mode === "fill";
const random = new Random(Number(seed));
const reporter = await Reporter.open(recorder);

async function work(job: Job): Promise<number> {
  const { cost, holdMs } = outcomeOf(job, random);
  const ended = reporter.start(job, cost);
  await (isFilling ? new Promise(() => {}) : pause(holdMs));
  await ended();
  return cost;
}

const gate = await GATES[subject as SubjectId](address, work);
/** A limiter may fail a request, for example when its time has passed. The user asks again. */
const ask = async (job: Job) =>
  gate.run(job).catch((error: Error) => {
    reporter.failed(error);
    return pause(100);
  });

await Promise.all(
  (isFilling ? FILLING : JOBS).map(async (job) => {
    do await ask(job);
    while (!isFilling);
  }),
);
