// Runs the steps of deploy/docker/Dockerfile without Docker: its RUN commands in empty folders, then its health check
// and its entry point. It shows that the program of the image is complete. It does not show that the base image has
// everything they need.
//   node scripts/test-image.mjs          takes the build that is here (`npm run build`)
//   node scripts/test-image.mjs --full   clones the repository and runs `npm ci` and `npm run build` too
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../packages/testkit/bin/free-port.mjs";

const repository = resolve(import.meta.dirname, "..");
const isFull = process.argv.includes("--full");
const home = mkdtempSync(join(tmpdir(), "slotkeeper-image-"));
const port = await freePort();
/** The local folders for the folders of the image. */
const places = {
  "/src": isFull ? join(home, "src") : repository,
  "/tarballs": join(home, "tarballs"),
  "/app": join(home, "app"),
};

/** The instructions of each stage. */
function readStages() {
  const stages = [];
  for (const line of readFileSync(join(repository, "deploy/docker/Dockerfile"), "utf8").split("\n")) {
    const [, instruction, text] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (instruction === "FROM") stages.push([]);
    else if (instruction !== undefined) stages.at(-1).push({ instruction, text });
  }
  return stages;
}

function here(text) {
  const moved = Object.entries(places).reduce(
    (changed, [from, to]) => changed.replaceAll(new RegExp(`(?<=^|["' =])${from}(?=[/"' ]|$)`, "g"), to),
    text,
  );
  return moved.replaceAll(":8080", `:${port}`);
}

function run(command, cwd) {
  console.log(`run   ${command}`);
  const { status, stdout, stderr } = spawnSync("sh", ["-euc", here(command)], { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`\`${command}\` ended with ${status}:\n${stdout}${stderr}`);
}

/** Steps that need a whole installation run only in full mode. */
const isSkipped = (text) => !isFull && /^npm (?:ci|run build)\b/.test(text);

function runStage(stage, folder) {
  for (const { instruction, text } of stage) {
    if (instruction === "RUN" && !isSkipped(text)) run(text, folder);
  }
}

/** The last instruction of this name in the last stage, as a list. */
function listOf(stage, name) {
  const text = stage.findLast(({ instruction }) => instruction === name)?.text ?? "[]";
  return JSON.parse(here(text.slice(text.indexOf("["))));
}

async function serve(stage) {
  const [program, ...args] = [...listOf(stage, "ENTRYPOINT"), ...listOf(stage, "CMD"), "--listen", `127.0.0.1:${port}`];
  const service = spawn(program, args, { stdio: "ignore", env: { ...process.env, NODE_ENV: "production" } });
  const ended = new Promise((done) => service.once("close", (code, signal) => done(code ?? signal)));
  const [probe, ...probeArgs] = listOf(stage, "HEALTHCHECK");
  const isHealthy = () => spawnSync(probe, probeArgs, { stdio: "ignore" }).status === 0;
  try {
    for (let tries = 0; !isHealthy(); tries++) {
      if (tries === 50 || service.exitCode !== null) throw new Error("the health check does not pass");
      await pause(100);
    }
    console.log("ok    the health check passes");
    const page = await fetch(`http://127.0.0.1:${port}/`);
    if (!page.ok || !(await page.text()).includes("<html")) throw new Error(`the dashboard answers ${page.status}`);
    service.kill("SIGTERM");
    const code = await ended;
    if (code !== 0) throw new Error(`SIGTERM ended the service with ${code}`);
    console.log("ok    serves the dashboard, and SIGTERM ends it with 0");
  } finally {
    service.kill("SIGKILL");
  }
}

try {
  const [build, app, image] = readStages();
  if (isFull) run(`git clone --quiet ${repository} ${places["/src"]}`, home);
  mkdirSync(places["/app"]);
  runStage(build, places["/src"]);
  runStage(app, places["/app"]);
  await serve(image);
} finally {
  rmSync(home, { recursive: true, force: true });
}
