// Everything that is not a test: types, format, lint with import boundaries, dead code, package and size checks.
// `npm run check` runs them all and reports them together; `npm run check -- lint size` runs some.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { delimiter, resolve } from "node:path";

const published = readdirSync("packages").filter(
  (name) => !JSON.parse(readFileSync(`packages/${name}/package.json`, "utf8")).private,
);

const checks = {
  types: ["tsc -b"],
  format: ["biome ci"],
  lint: ["oxlint --type-aware --deny-warnings"],
  "dead-code": ["knip"],
  packages: published.flatMap((name) => [
    `publint --strict packages/${name}`,
    `attw --pack packages/${name} --profile esm-only --format ascii`,
  ]),
  size: ["size-limit"],
  install: ["npm run build -w packages/dashboard", "node scripts/test-packages.mjs", "node scripts/test-image.mjs"],
};

// The tools of the workspace first, as in an npm script.
process.env.PATH = `${resolve("node_modules/.bin")}${delimiter}${process.env.PATH}`;

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in checks));
if (unknown.length > 0) {
  console.error(`Unknown check: ${unknown.join(", ")}. Expected some of: ${Object.keys(checks).join(", ")}.`);
  process.exit(2);
}

const failed = [];
for (const name of asked.length > 0 ? asked : Object.keys(checks)) {
  for (const command of checks[name]) {
    const startedAt = performance.now();
    const { status, stdout, stderr } = spawnSync(command, { shell: true, encoding: "utf8" });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${status === 0 ? "ok  " : "FAIL"}  ${name.padEnd(10)} ${command}  (${seconds} s)`);
    if (status !== 0) {
      console.log(stdout + stderr);
      failed.push(command);
    }
  }
}
if (failed.length > 0) {
  console.log(`\nchecks: ${failed.length} failed: ${failed.join("; ")}`);
  process.exit(1);
}
console.log("\nchecks: all passed");
