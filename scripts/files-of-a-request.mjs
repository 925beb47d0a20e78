#!/usr/bin/env node
/**
 * Counts the source files that one request executes: those with a function that runs, by V8's precise coverage of a service with the memory store.
 * The counts are reset after the start and after a request at another host. Then one acquire creates its host and is granted, and is released.
 * Both the answer and the work that follows it count. Needs a build (`npx tsc -b`).
 */
import { existsSync, readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { relative, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const HELP = `Usage: node scripts/files-of-a-request.mjs [options]

  --against FOLDER    counts another checkout by the same method, too; it needs a build of its own
  --list              shows the files and their numbers of lines
  --help              shows this`;

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

/** What follows an answer, such as the commit of a release, counts. */
const AFTERWARDS_MS = 200;
/** The beat that a request causes after a second does not count, nor does the first sample of the telemetry after five. */
const BEAT_MS = 1_100;

const here = resolve(import.meta.dirname, "..");
for (const checkout of [values.against, here])
  if (checkout !== undefined) show(checkout, await measure(resolve(checkout)));

async function measure(checkout) {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  // Before the import, so that V8 counts every call.
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const { Service } = await import(pathToFileURL(`${checkout}/packages/server/dist/index.js`).href);
  const log = { write: () => {}, isJson: true, hasColours: false };
  const service = await Service.start({ flags: { listen: "127.0.0.1:0" }, log });
  const { url } = service;
  const executed = async (path, body) => {
    await filesOf(session, checkout);
    const answer = await call(`${url}/api/v0/fairqueue/${path}`, body);
    await pause(AFTERWARDS_MS);
    return [answer, await filesOf(session, checkout)];
  };
  const acquire = (hostname) => executed("acquire", { hostname, bucket: "customer-7", waitMs: 1_000 });
  const release = ({ slotToken }) => executed("release", { slotToken });
  try {
    const [first] = await acquire("other.example.com");
    await release(first);
    await pause(BEAT_MS);
    const [granted, acquired] = await acquire("api.example.com");
    await pause(BEAT_MS);
    const [, released] = await release(granted);
    return {
      acquire: acquired,
      release: released,
      both: [...new Set([...acquired, ...released])].toSorted((a, b) => a.localeCompare(b)),
    };
  } finally {
    session.disconnect();
    await service.stop();
  }
}

async function call(url, body) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (answer.result !== "granted" && answer.result !== "ok") throw new Error(`${url}: ${JSON.stringify(answer)}`);
  return answer;
}

/** The source files with a function that was executed since the last call. At offset 0 is the body of the file. */
async function filesOf(session, checkout) {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ functions }) => functions.some(({ ranges: [{ count, startOffset }] }) => count > 0 && startOffset > 0))
    .filter(({ url }) => url.startsWith(pathToFileURL(`${checkout}/packages/`).href))
    .map(({ url }) => relative(checkout, fileURLToPath(url)).replace("/dist/", "/src/").replace(/\.js$/, ".ts"))
    .filter((file) => existsSync(`${checkout}/${file}`))
    .sort();
}

function show(checkout, requests) {
  const linesOf = (file) => readFileSync(`${checkout}/${file}`, "utf8").trimEnd().split("\n").length;
  console.log(relative(process.cwd(), checkout) || ".");
  for (const [name, files] of Object.entries(requests)) {
    const lines = files.reduce((sum, file) => sum + linesOf(file), 0);
    console.log(`  ${name}: ${files.length} files of ${lines} lines`);
    if (values.list) for (const file of files) console.log(`    ${String(linesOf(file)).padStart(4)}  ${file}`);
  }
}
