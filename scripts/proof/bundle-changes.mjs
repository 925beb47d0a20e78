// The bundle in which the engine is judged: all changes of some files as Stryker makes them, behind switches, and the checks.
// A check is a history that is compared with the reference book, a seed of the simulator, or a test.
import { readFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Instrumenter } from "@stryker-mutator/instrumenter";
import { build } from "esbuild";

const ROOT = resolve(import.meta.dirname, "../..");
/** How many seeds of each kind there are. A change gets a part of them (judge.mjs). */
const SEEDS = { history: 80, "long history": 30, "hot history": 30, "stored history": 15, "simulated fleet": 10 };
const silent = () => {};
const LOGGER = { isDebugEnabled: () => false, debug: silent, info: silent, warn: silent };

/** The switches that the instrumented code calls. */
const SWITCHES = `const switches = globalThis.slotkeeperSwitches;
function stryMutAct_9fa48(id) {
  if (switches.active !== id) return false;
  if (++switches.hits > switches.limit) throw new Error("executed too often");
  return true;
}
function stryCov_9fa48(...ids) {
  if (switches.counts !== undefined) for (const id of ids) switches.counts.set(id, (switches.counts.get(id) ?? 0) + 1);
}`;

const checksOf = (tests) => `
import * as fc from "fast-check";
import { compareHistory, hotHistory, longHistory, memoryHost, randomHistory, storedHost } from "@slotkeeper/testkit/reference";
import { simulate } from "@slotkeeper/testkit/simulator";
${tests.map((file) => `import ${JSON.stringify(resolve(ROOT, file))};`).join("\n")}
import { tests } from "vitest";

// A check gives the same answer each time, and the first failure is enough.
fc.configureGlobal({ seed: 1, endOnFailure: true });

async function compare(history, host) {
  const difference = await compareHistory(history, host);
  if (difference !== undefined) throw new Error(difference.what + " differ at step " + difference.step);
}
async function run(seed) {
  const { violations, verdict } = await simulate(seed);
  const [violation] = [...violations, ...verdict.violations.map(({ rule }) => rule)];
  if (violation !== undefined) throw new Error(violation);
}
const kinds = {
  history: (seed) => compare(randomHistory(seed), memoryHost()),
  "long history": (seed) => compare(longHistory(seed), memoryHost()),
  "hot history": (seed) => compare(hotHistory(seed), memoryHost()),
  "stored history": (seed) => compare(randomHistory(seed), storedHost()),
  "simulated fleet": run,
};
const seeds = Object.entries(${JSON.stringify(SEEDS)}).flatMap(([kind, count]) =>
  Array.from({ length: count }, (_, at) => ({ kind, name: kind + " " + (at + 1), run: () => kinds[kind](at + 1) })),
);
export const checks = [
  ...seeds,
  ...tests.map((test) => ({ kind: "test", ...test })),
];`;

/** Writes the bundle to `outfile` and returns the changes. */
export async function bundleChanges(files, tests, outfile) {
  const sources = files.map((file) => ({
    name: resolve(ROOT, file),
    mutate: true,
    content: readFileSync(resolve(ROOT, file), "utf8"),
  }));
  const options = { excludedMutations: [], ignorers: [], plugins: null, noHeader: true };
  const { mutants, files: instrumented } = await new Instrumenter(LOGGER).instrument(sources, options);
  const texts = new Map(instrumented.map(({ name, content }) => [name, content]));
  const plugin = {
    name: "changes",
    setup({ onLoad, onResolve }) {
      onLoad({ filter: /\/queue\/src\// }, ({ path }) => {
        return texts.has(path) ? { contents: texts.get(path), loader: "ts" } : undefined;
      });
      const standIn = fileURLToPath(new URL("checks-of-tests.mjs", import.meta.url));
      onResolve({ filter: /^vitest$/ }, ({ importer }) => {
        return importer === standIn ? { external: true } : { path: standIn };
      });
    },
  };
  await build({
    stdin: { contents: checksOf(tests), resolveDir: ROOT },
    bundle: true,
    format: "esm",
    platform: "node",
    target: "es2022",
    conditions: ["@slotkeeper/source"],
    // The tests are in packages that say that loading them does nothing.
    ignoreAnnotations: true,
    banner: { js: SWITCHES },
    logLevel: "error",
    plugins: [plugin],
    outfile,
  });
  return mutants.map(changeOf);
}

/** As in Stryker's report, where lines and columns start at 1. */
function changeOf({ id, fileName, mutatorName, replacement, location: { start, end } }) {
  const moved = ({ line, column }) => ({ line: line + 1, column: column + 1 });
  const location = { start: moved(start), end: moved(end) };
  return { id, file: relative(ROOT, fileName), mutatorName, replacement, location };
}
