// The thread of judge.mjs. It loads the bundle once; each change is switched on in it.
import { parentPort, workerData } from "node:worker_threads";

/** What the bundle reads: the change that is on, how often it may be executed, and where executions are counted. */
const switches = { active: workerData.active, hits: 0, limit: Infinity, counts: new Map() };
globalThis.slotkeeperSwitches = switches;

/** A change can make code fail where nothing waits for it, also after its check. What counts is what a check sees. */
process.on("unhandledRejection", () => {});
process.on("uncaughtException", () => {});

const { checks } = await import(workerData.bundle);
const atLoad = new Set(switches.counts.keys());
switches.counts = undefined;
const answer = async (asked) => parentPort.postMessage(await (asked.order ? judge(asked) : measure()), []);
parentPort.on("message", (asked) => void answer(asked));

/** Without a change: which checks execute which changes how often. None of them may fail. */
async function measure() {
  const measured = [];
  for (const [at, { kind, name, run }] of checks.entries()) {
    parentPort.postMessage({ begun: at }, []);
    const before = performance.now();
    switches.counts = new Map();
    const failure = await failureOf(run);
    if (failure !== undefined) return { failure: `Without a change, ${name} fails: ${failure}` };
    measured.push({ kind, name, ms: performance.now() - before, counts: switches.counts });
  }
  switches.counts = undefined;
  return { measured, atLoad };
}

/** The first check that fails with the change. Right after it, it must pass without the change. */
async function judge({ id, order, isStatic }) {
  for (const { at, limit } of order) {
    parentPort.postMessage({ begun: at }, []);
    Object.assign(switches, { active: id, hits: 0, limit });
    const failure = await failureOf(checks[at].run);
    if (!isStatic) switches.active = undefined;
    if (failure === undefined) continue;
    const isSound = isStatic || (await failureOf(checks[at].run)) === undefined;
    return { found: at, failure: failure.slice(0, 200), isSound };
  }
  return { isSound: true };
}

/** A check has failed, too, if nothing will settle its promise any more, or if it works for too long. */
function failureOf(run) {
  return new Promise((resolve) => {
    const before = process.cpuUsage();
    const isIdle = () => process.getActiveResourcesInfo().every((name) => name === "MessagePort" || name === "Timeout");
    const look = setInterval(() => {
      if (isIdle()) end("It waits for ever.");
      else if (process.cpuUsage(before).user / 1000 > workerData.limitMs) end("It does not end.");
    }, 200);
    const end = (failure) => {
      clearInterval(look);
      resolve(failure);
    };
    run().then(
      () => end(undefined),
      (error) => end(String(error)),
    );
  });
}
