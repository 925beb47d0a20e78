// Publishes the tarballs of a folder, dependencies first, except those whose version the registry has already: a release
// that was interrupted is completed by a second run.
//   node scripts/publish-packed.mjs FOLDER
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";

const [, , folder] = process.argv;
if (folder === undefined) {
  console.error("Expected the folder with the tarballs.");
  process.exit(2);
}

const packed = readdirSync(folder)
  .filter((file) => file.endsWith(".tgz"))
  .map((file) => {
    const path = resolve(join(folder, file));
    return { path, ...JSON.parse(execFileSync("tar", ["-xzOf", path, "package/package.json"], { encoding: "utf8" })) };
  });

for (const { name, version, path } of inOrder(packed)) {
  if (isPublished(name, version)) {
    console.log(`${name}@${version} is published already`);
    continue;
  }
  execFileSync("npm", ["publish", path, "--access", "public", "--ignore-scripts"], { stdio: "inherit" });
  console.log(`published ${name}@${version}`);
}

/** Each package after those that it depends on. */
function inOrder(packages) {
  const ordered = new Set();
  const add = (one) => {
    for (const name of Object.keys(one.dependencies ?? {})) {
      const needed = packages.find((other) => other.name === name);
      if (needed !== undefined) add(needed);
    }
    ordered.add(one);
  };
  packages.forEach(add);
  return ordered;
}

/** Only the registry's "not found" means that it is not: any other failure stops the release. */
function isPublished(name, version) {
  const { status, stdout, stderr } = spawnSync("npm", ["view", `${name}@${version}`, "version", "--json"], {
    encoding: "utf8",
  });
  if (status === 0) return stdout.trim() !== "";
  if (stdout.includes('"E404"')) return false;
  throw new Error(`The registry did not say whether it has ${name}@${version}:\n${stdout}${stderr}`);
}
