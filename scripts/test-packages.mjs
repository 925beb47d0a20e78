// Packs every published package, installs the tarballs into an empty project and uses them there: plain JavaScript (ESM
// and CommonJS), TypeScript 5.9, 6 and 7, and `npx slotkeeper serve`. It shows what a user gets, which the workspace
// hides: files that are not published, undeclared dependencies, declarations that only our own compiler accepts.
//   node scripts/test-packages.mjs                    needs a build (`npm run build`)
//   node scripts/test-packages.mjs --keep             leaves the project there and prints where
//   node scripts/test-packages.mjs --release FOLDER   copies the tested tarballs and their SBOM there, if all steps pass
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values: flags } = parseArgs({ options: { keep: { type: "boolean" }, release: { type: "string" } } });

const COMPILERS = { "ts5-9": "5.9", ts6: "6", ts7: "7" };
/** `bundler` resolves the same `exports`; one compiler is enough for it. */
const COMPILED = [
  ["ts5-9", "nodenext"],
  ["ts6", "nodenext"],
  ["ts7", "nodenext"],
  ["ts7", "bundler"],
];
/** What a package may contain, apart from its README, LICENSE and package.json. */
const PUBLISHED =
  /^(?:dist\/.+\.(?:js|js\.map|d\.ts|d\.ts\.map|html|css|svg|br|gz)|src\/.+\.ts|bin\/.+\.mjs|sql\/[^/]+\.sql|schema\/.+\.json|skills\/.+\/SKILL\.md)$/;

const repository = resolve(import.meta.dirname, "..");
const packages = readdirSync(join(repository, "packages"))
  .map((folder) => ({
    folder,
    ...JSON.parse(readFileSync(join(repository, "packages", folder, "package.json"), "utf8")),
  }))
  .filter((manifest) => !manifest.private);
const entries = packages.flatMap(({ name, exports }) =>
  Object.keys(exports)
    .filter((path) => !path.endsWith(".json"))
    .map((path) => name + path.slice(1)),
);
/** This entry needs an optional peer, which is installed only for its own step: all others load without it. */
const WITH_PEER = { entry: "@slotkeeper/client/opentelemetry", peer: "@opentelemetry/api" };
/** The command's entry starts a program when it is loaded. */
const loadable = entries.filter((entry) => entry !== "@slotkeeper/cli" && entry !== WITH_PEER.entry);

if (!existsSync(join(repository, "packages/server/dist/dashboard/index.html"))) {
  console.error("There is no build to pack. Run `npm run build` first.");
  process.exit(2);
}

const failed = [];
const project = mkdtempSync(join(tmpdir(), "slotkeeper-packages-"));
try {
  await step("pack", pack);
  await step("install the tarballs into an empty project", install);
  await step("ESM", () => run(process.execPath, ["run.mjs", ...loadable]));
  await step("CommonJS", () => run(process.execPath, ["run.cjs", ...loadable]));
  for (const [compiler, resolution] of COMPILED) {
    await step(`TypeScript ${COMPILERS[compiler]}, ${resolution}`, () => compile(compiler, resolution));
  }
  await step("npx slotkeeper serve", serve);
  await step("SBOM", listComponents);
  await step(WITH_PEER.entry, loadWithPeer);
  if (failed.length === 0 && flags.release !== undefined) release(resolve(flags.release));
  console.log(failed.length === 0 ? "packages: all steps passed" : `packages: failed: ${failed.join("; ")}`);
  process.exitCode = failed.length === 0 ? 0 : 1;
} finally {
  if (flags.keep) console.log(project);
  else rmSync(project, { recursive: true, force: true });
}

async function step(title, work) {
  const startedAt = performance.now();
  try {
    await work();
  } catch (error) {
    console.error(`FAIL  ${title}\n${error.message}`);
    failed.push(title);
    return;
  }
  console.log(`ok    ${title}  (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
}

function run(command, args, cwd = project) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", timeout: 240_000 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status ?? error}:\n${stdout}${stderr}`);
  return stdout;
}

function pack() {
  mkdirSync(join(project, "tarballs"));
  const chosen = packages.flatMap(({ folder }) => ["--workspace", `packages/${folder}`]);
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", join(project, "tarballs"), ...chosen];
  // An array before npm 11, an object of the same values since.
  const packed = Object.values(JSON.parse(run("npm", args, repository)));
  for (const { name, files } of packed) {
    const paths = files.map(({ path }) => path);
    const published = new Set(paths);
    const leftovers = paths.filter((path) => isCompiled(path) && !published.has(sourceOf(path)));
    if (leftovers.length > 0) {
      throw new Error(`${name} publishes leftovers of an older build: ${leftovers.slice(0, 5).join(", ")}`);
    }
    const missing = ["README.md", "LICENSE", "package.json"].filter((path) => !paths.includes(path));
    const surplus = paths.filter(
      (path) => !/^(?:README\.md|LICENSE|package\.json)$/.test(path) && !PUBLISHED.test(path),
    );
    if (missing.length > 0) throw new Error(`${name} lacks ${missing.join(", ")}`);
    if (surplus.length > 0) throw new Error(`${name} publishes ${surplus.slice(0, 5).join(", ")}`);
  }
}

/** The dashboard is bundled; its build empties the folder first. `tsc` removes nothing. */
function isCompiled(path) {
  return path.startsWith("dist/") && path.endsWith(".js") && !path.startsWith("dist/dashboard/");
}

function sourceOf(path) {
  return path.replace(/^dist\//, "src/").replace(/\.js$/, ".ts");
}

function install() {
  cpSync(join(import.meta.dirname, "package-project"), project, { recursive: true });
  const compilers = Object.entries(COMPILERS).map(([alias, range]) => [alias, `npm:typescript@${range}`]);
  const tarballs = readdirSync(join(project, "tarballs")).map((file) => `./tarballs/${file}`);
  writeFileSync(
    join(project, "package.json"),
    JSON.stringify({
      // The name and the version in the SBOM.
      name: "slotkeeper-release",
      version: packages[0].version,
      private: true,
      type: "module",
      devDependencies: { ...Object.fromEntries(compilers), "@types/node": "^20" },
    }),
  );
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", ...tarballs]);
}

function loadWithPeer() {
  const { version } = JSON.parse(
    readFileSync(join(repository, "node_modules", WITH_PEER.peer, "package.json"), "utf8"),
  );
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", `${WITH_PEER.peer}@${version}`]);
  run(process.execPath, ["run.mjs", WITH_PEER.entry]);
}

function compile(compiler, resolution) {
  const options = {
    target: "es2022",
    lib: ["es2023", "esnext.disposable", "dom"],
    module: resolution === "bundler" ? "esnext" : resolution,
    moduleResolution: resolution,
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["consumer.ts"] }));
  const { bin } = JSON.parse(readFileSync(join(project, "node_modules", compiler, "package.json"), "utf8"));
  run(process.execPath, [join("node_modules", compiler, bin.tsc), "-p", "."]);
}

async function serve() {
  // In a process group of its own, which gets the signal as a whole: that is what Ctrl-C does in a terminal.
  const child = spawn("npx", ["--no-install", "slotkeeper", "serve", "--listen", "127.0.0.1:0", "--json"], {
    cwd: project,
    detached: true,
  });
  const ended = new Promise((done) => child.on("close", done));
  const failure = createInterface(child.stderr);
  const lines = [];
  failure.on("line", (line) => lines.push(line));
  try {
    const first = await Promise.race([
      new Promise((done) => createInterface(child.stdout).once("line", done)),
      ended.then((code) => Promise.reject(new Error(`serve ended with ${code}:\n${lines.join("\n")}`))),
    ]);
    const { url } = JSON.parse(first);
    const page = await fetch(url);
    if (page.status !== 200 || !(await page.text()).includes("<html"))
      throw new Error(`${url} answered ${page.status}`);
    const granted = run("npx", ["--no-install", "slotkeeper", "acquire", "--url", url, "--host", "api.example.com"]);
    if (!granted.startsWith("slot_")) throw new Error(`acquire printed ${granted}`);
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGINT");
  }
  await ended;
  // `npx` itself ends by the signal, so its exit code means nothing.
  if (!lines.some((line) => line.includes('"stopped"'))) throw new Error(`serve did not stop:\n${lines.join("\n")}`);
}

/** The SBOM lists what an installation of our packages brings, without the tools of this test. */
function listComponents() {
  const program = join(repository, "node_modules/@cyclonedx/cyclonedx-npm/bin/cyclonedx-npm-cli.js");
  const options = ["--omit", "dev", "--mc-type", "application", "--output-reproducible", "--validate"];
  run(process.execPath, [program, ...options, "--output-file", "sbom.cdx.json"]);
  const { components } = JSON.parse(readFileSync(join(project, "sbom.cdx.json"), "utf8"));
  const listed = new Set(components.map(({ group, name }) => (group ? `${group}/${name}` : name)));
  const expected = packages.flatMap(({ name, dependencies = {} }) => [name, ...Object.keys(dependencies)]);
  const missing = expected.filter((name) => !listed.has(name));
  if (missing.length > 0) throw new Error(`the SBOM lacks ${missing.join(", ")}`);
  if (listed.has("typescript")) throw new Error("the SBOM lists the compilers of this test, which no package brings");
}

function release(folder) {
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(project, "tarballs"), folder, { recursive: true });
  cpSync(join(project, "sbom.cdx.json"), join(folder, "sbom.cdx.json"));
  console.log(`${folder}: ${readdirSync(folder).join(", ")}`);
}
