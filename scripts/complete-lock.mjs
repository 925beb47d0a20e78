// Completes package-lock.json after a dependency changed: `npm install && node scripts/complete-lock.mjs`.
//
// If a registry has the packages of some platforms only, npm leaves the others out of the lock file, and `npm ci` then
// refuses the file ("Missing: … from lock file") on every machine. So this script adds each optional package that a
// locked package names and that has a platform in its name. None of them is installed on other platforms.
//
// Such an entry has no `integrity`, so npm would install whatever the registry has under this name and version. The
// script lists these entries. The release workflow fills and checks them with a registry that has all platforms.
//   --fill    asks the registry for the missing ones
//   --check   changes nothing, and exits 1 if an entry has none
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "win32", "openharmony", "netbsd", "openbsd", "sunos", "aix"];
const PROCESSORS = ["arm64", "x64", "ia32", "ppc64", "riscv64", "s390x", "loong64", "mips64el", "wasm32", "arm"];
const INTEGRITY = /^sha512-[A-Za-z0-9+/]{86}==$/;

function platformOf(name) {
  const parts = name.split("/").at(-1);
  const cpu = PROCESSORS.find((processor) => parts.includes(processor));
  const os = SYSTEMS.find((system) => parts.includes(system));
  return {
    ...(cpu && { cpu: [cpu] }),
    ...(parts.includes("musl") && { libc: ["musl"] }),
    ...(os && { os: [os] }),
  };
}

/** Adds the packages that npm left out, and returns their names. */
function addMissing(packages) {
  const added = [];
  for (const [path, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(optionalDependencies)) {
      const places = [`${path}/node_modules/${name}`, `node_modules/${name}`];
      if (places.some((place) => place in packages)) continue;
      const version = range.replace(/^[\^~]/, "");
      packages[`node_modules/${name}`] = { version, ...(dev && { dev }), optional: true, ...platformOf(name) };
      added.push(`${name}@${version}`);
    }
  }
  return added;
}

/** Entries of the registry without `integrity`. Links to the packages of this repository need none. */
function unchecked(packages) {
  return Object.entries(packages).filter(
    ([path, { link, integrity }]) => path.includes("node_modules/") && link !== true && integrity === undefined,
  );
}

function nameOf(path) {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** Asks the registry that npm uses. Returns `undefined` if it does not have the package. */
function integrityOf(name, version) {
  try {
    const answer = execFileSync("npm", ["view", `${name}@${version}`, "dist.integrity", "--json"], { stdio: "pipe" });
    const integrity = JSON.parse(answer.toString() || "null");
    return INTEGRITY.test(integrity) ? integrity : undefined;
  } catch {
    return undefined;
  }
}

const { values } = parseArgs({ options: { fill: { type: "boolean" }, check: { type: "boolean" } } });
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
if (!values.check) {
  const added = addMissing(lock.packages);
  if (values.fill) {
    for (const [path, entry] of unchecked(lock.packages)) {
      const integrity = integrityOf(nameOf(path), entry.version);
      if (integrity !== undefined) entry.integrity = integrity;
    }
  }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync("package-lock.json", `${JSON.stringify(lock, undefined, 2)}\n`);
  console.log(added.length === 0 ? "No package was missing." : `Added ${added.join(", ")}.`);
}
const left = unchecked(lock.packages).map(([path, { version }]) => `${nameOf(path)}@${version}`);
if (left.length === 0) console.log("Every entry has an integrity.");
else {
  const fix = "Run `node scripts/complete-lock.mjs --fill` with a registry that has all platforms.";
  console.log(`Without integrity (${left.length}):\n${left.map((entry) => `  ${entry}\n`).join("")}${fix}`);
}
if (values.check && left.length > 0) process.exit(1);
