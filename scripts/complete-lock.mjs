// Completes package-lock.json after a dependency changed: `npm install && node scripts/complete-lock.mjs`.
//
// If a registry has the packages of some platforms only, npm leaves the others out of the lock file, and `npm ci` then
// refuses the file ("Missing: … from lock file") on every machine. So this script adds each optional package that a
// locked package names and that has a platform in its name. None of them is installed on other platforms.
import { readFileSync, writeFileSync } from "node:fs";

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "win32", "openharmony", "netbsd", "openbsd", "sunos", "aix"];
const PROCESSORS = ["arm64", "x64", "ia32", "ppc64", "riscv64", "s390x", "loong64", "mips64el", "wasm32", "arm"];

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

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const added = [];
for (const [path, { optionalDependencies = {}, dev }] of Object.entries(lock.packages)) {
  for (const [name, range] of Object.entries(optionalDependencies)) {
    const places = [`${path}/node_modules/${name}`, `node_modules/${name}`];
    if (places.some((place) => place in lock.packages)) continue;
    const version = range.replace(/^[\^~]/, "");
    lock.packages[`node_modules/${name}`] = { version, ...(dev && { dev }), optional: true, ...platformOf(name) };
    added.push(`${name}@${version}`);
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync("package-lock.json", `${JSON.stringify(lock, undefined, 2)}\n`);
console.log(added.length === 0 ? "package-lock.json is complete" : `added ${added.join(", ")}`);
