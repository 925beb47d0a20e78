// The fast judge of changes in the engine. All changes are in one bundle, and one thread tries them: a change takes milliseconds.
// Stryker with vitest takes seconds for each, because it plans a run of the tests for each.
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { bundleChanges } from "./bundle-changes.mjs";

/** The time that a check may work. None takes a tenth of it. What counts is the time of the processor, which other programs do not change. */
const LIMIT_MS = 15_000;
/** How often a thread that does not answer is looked at. */
const LOOK_MS = 1_000;

/** How many checks of a kind a change gets at most: those that execute it most often. Further ones find little. */
const MOST = {
  history: 30,
  "long history": 12,
  "hot history": 12,
  "stored history": 6,
  "simulated fleet": 4,
  test: Infinity,
};
/** The part of the time of all checks that a change gets. What is left out takes long and has found little. */
const PART = 0.2;

/** A thread with the bundle. What it does not answer in time, it never will. */
class Thread {
  isFresh = true;
  #worker;
  #reply;
  #timer;

  constructor(bundle, active) {
    const workerData = { bundle: pathToFileURL(bundle).href, active, limitMs: LIMIT_MS / 2 };
    this.#worker = new Worker(new URL("judge-worker.mjs", import.meta.url), { workerData, stdout: true, stderr: true });
    this.#worker.on("message", (answer) => (answer.begun === undefined ? this.#reply(answer) : this.#watch()));
    this.#worker.on("error", (error) => this.#reply({ failure: String(error) }));
  }

  #watch() {
    clearInterval(this.#timer);
    const before = process.cpuUsage();
    this.#timer = setInterval(() => {
      if (process.cpuUsage(before).user / 1000 > LIMIT_MS) this.#reply({ isLost: true });
    }, LOOK_MS);
  }

  async ask(question) {
    this.#watch();
    this.#worker.postMessage(question, []);
    const answer = await new Promise((resolve) => {
      this.#reply = resolve;
    });
    clearInterval(this.#timer);
    return answer;
  }

  end() {
    return this.#worker.terminate();
  }
}

/** Judges changes one after the other. Another thread takes over when one is lost, or has kept something of a change. */
export class Judge {
  #changes;
  #bundle;
  #thread;
  #checks;
  #atLoad;
  #totalMs;
  #finds;

  /** Instruments the files, and runs every check without a change. */
  static async of(files, tests, bundle) {
    const judge = new Judge();
    judge.#bundle = bundle;
    judge.#changes = await bundleChanges(files, tests, bundle);
    judge.#thread = new Thread(bundle);
    const { measured, atLoad, failure } = await judge.#thread.ask({});
    if (measured === undefined) throw new Error(failure ?? "A check takes too long without a change.");
    judge.#checks = measured;
    judge.#atLoad = atLoad;
    judge.#totalMs = measured.reduce((sum, { ms }) => sum + ms, 0);
    judge.#finds = measured.map(() => 0);
    return judge;
  }

  changesOf(file) {
    return this.#changes.filter((change) => change.file === file);
  }

  async close() {
    await this.#thread.end();
  }

  /** The result of a change: its status in Stryker's report, and what found it. */
  async resultOf({ id }) {
    const isStatic = this.#atLoad.has(id);
    const order = this.#orderFor(id, isStatic).map((at) => ({ at, limit: this.#limitOf(at, id) }));
    if (order.length === 0) return { status: "NoCoverage" };
    if (isStatic) await this.#renew(id);
    const answer = await this.#thread.ask({ id, order, isStatic });
    const { isFresh } = this.#thread;
    this.#thread.isFresh = false;
    if (isStatic || answer.isLost || answer.isSound !== true) await this.#renew();
    // The thread had kept something of an earlier change, so this one is judged again.
    if (answer.isSound === false && !isFresh) return this.resultOf({ id });
    if (answer.isLost) return { status: "Timeout" };
    if (answer.found !== undefined) this.#finds[answer.found]++;
    const foundBy = this.#checks[answer.found]?.name ?? "loading the modules";
    return answer.failure === undefined
      ? { status: "Survived" }
      : { status: "Killed", statusReason: `${foundBy}: ${answer.failure}` };
  }

  /** The checks for a change, first those that find much in little time. What loading executes, all checks may show. */
  #orderFor(id, isStatic) {
    const cost = (at) => this.#checks[at].ms / (1 + this.#finds[at]);
    const hits = (at) => this.#checks[at].counts.get(id) ?? 0;
    const all = [...this.#checks.keys()].filter((at) => isStatic || hits(at) > 0);
    const most = Object.entries(MOST).flatMap(([kind, count]) => {
      const ones = all.filter((at) => this.#checks[at].kind === kind);
      return ones.sort((a, b) => hits(b) - hits(a)).slice(0, count);
    });
    let leftMs = PART * this.#totalMs;
    return most.sort((a, b) => cost(a) - cost(b)).filter((at) => (leftMs -= this.#checks[at].ms) > 0);
  }

  /** An endless loop that executes the change often ends here, so it takes no time. */
  #limitOf(at, id) {
    return 1_000 + 20 * (this.#checks[at].counts.get(id) ?? 0);
  }

  async #renew(active) {
    await this.#thread.end();
    this.#thread = new Thread(this.#bundle, active);
  }
}
