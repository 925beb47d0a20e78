#!/usr/bin/env node
/**
 * Frames per second of the dashboard while it scrolls 1,000 hosts, of which 60 change all the time, and a queue of 10,000 waiters, beside a
 * bare page of plain rows in the same browser: no page can be faster than that. `npm run bench:dashboard` builds and runs it.
 * Best of three: another program may take the processor for a moment, but nothing makes a slow page fast.
 */
import { parseArgs } from "node:util";
import { Service } from "@slotkeeper/server";
import { launchChromium } from "@slotkeeper/testkit/browser";
import { fillQueue, holdOne, Load, manyHosts } from "@slotkeeper/testkit/load";

const HELP = `Usage: npm run bench:dashboard -- [options]

  --hosts N     hosts in the table (1000)
  --waiters N   sessions in the queue of one host (10000)
  --help        shows this`;

const { values } = parseArgs({
  options: {
    hosts: { type: "string", default: "1000" },
    waiters: { type: "string", default: "10000" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const [HOSTS, WAITERS] = [Number(values.hosts), Number(values.waiters)];
const LIVE_HOSTS = 60;
/** The goal: this many, or four fifths of what a bare page has on this machine. */
const GOAL = 50;

/** Frames per second over two seconds of scrolling, some rows with every frame. */
async function scrolled(page, selector) {
  const times = await page.locator(selector).evaluate(async (element) => {
    const taken = [];
    await new Promise((resolve) => {
      const step = (time) => {
        taken.push(time);
        element.scrollBy(0, 60);
        if (time - taken[0] < 2_000) requestAnimationFrame(step);
        else resolve();
      };
      requestAnimationFrame(step);
    });
    return taken;
  });
  return Math.round(((times.length - 1) / (times.at(-1) - times[0])) * 1000);
}

async function framesPerSecond(page, selector) {
  const measured = [];
  for (let round = 0; round < 3; round++) measured.push(await scrolled(page, selector));
  return Math.max(...measured);
}

const row = "<p style='height:44px;margin:0'>a row of plain text</p>";
const BARE = `<main style="height:600px;overflow:auto">${row.repeat(1000)}</main>`;

const service = await Service.start({
  flags: {
    listen: "127.0.0.1:0",
    fairQueue: { maxWaitersPerHost: 0, globalMaxWaiters: -1, maxWaitMs: 600_000, sessionIdleSeconds: 600 },
  },
  environment: {},
  log: { write: () => {}, isJson: true, hasColours: false },
});
const target = { url: service.url };
const load = new Load(target, manyHosts(LIVE_HOSTS));
const browser = await launchChromium();
try {
  await holdOne(target, HOSTS - LIVE_HOSTS - 1);
  await fillQueue(target, "crowded.example", WAITERS);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, locale: "en-US" });
  const bare = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await bare.setContent(BARE);
  const limit = await framesPerSecond(bare, "main");
  await page.goto(`${service.url}/#/hosts`);
  await page.getByRole("searchbox").waitFor();
  const hosts = await framesPerSecond(page, ".rows");
  await page.getByRole("searchbox").fill("crowded");
  await page.getByRole("link", { name: "crowded.example" }).click();
  await page.getByText(`${WAITERS.toLocaleString("en-US")} at this instance`).waitFor({ timeout: 60_000 });
  const queue = await framesPerSecond(page, ".queue .rows");
  const least = Math.min(GOAL, 0.8 * limit);
  console.table({
    "bare page": { fps: limit },
    [`${HOSTS} hosts`]: { fps: hosts },
    [`${WAITERS} waiters`]: { fps: queue },
  });
  console.log(`goal: at least ${Math.round(least)}: ${Math.min(hosts, queue) >= least ? "reached" : "missed"}`);
} finally {
  await browser.close();
  await load.stop();
  await service.stop({ graceMs: 0, deadlineMs: 500 });
}
