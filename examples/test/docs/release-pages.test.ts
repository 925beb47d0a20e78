/** The pages about a release name tests, packages and entries that exist, and all of them. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "./pages.ts";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const published = readdirSync(join(ROOT, "packages"))
  .map((folder) => JSON.parse(read(`packages/${folder}/package.json`)) as Manifest)
  .filter((manifest) => manifest.private !== true);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly exports: Record<string, unknown>;
}

describe("SECURITY.md", () => {
  const points = read("SECURITY.md").match(/^- \[.\].*/gm) ?? [];

  test("has a threat model", () => {
    expect(points.length).toBeGreaterThan(20);
  });

  test.each(points)("%s", (point) => {
    const [, file = "", title = ""] = /^- \[x\] .+ `(packages\/[\w./-]+\.test\.ts)`: "(.+)"$/.exec(point) ?? [];
    expect(file === "" ? [point] : []).toEqual([]);
    expect(existsSync(join(ROOT, file))).toBe(true);
    expect(read(file)).toContain(`("${title}"`);
  });
});

test("the page of versions lists every entry of every published package, and no other", () => {
  const [, entries = ""] = /^The entries: ([\s\S]*?)^## /m.exec(read("docs/reference/versions.md")) ?? [];
  const listed = [...entries.matchAll(/`([^`]+)`/g)].map(([, entry = ""]) => entry);
  const existing = published.flatMap(({ name, exports }) =>
    Object.keys(exports)
      .filter((path) => path !== "./package.json")
      .map((path) => name + path.slice(1)),
  );
  expect(listed.sort()).toEqual(existing.sort());
});

test("the newest section of the changes is for the version of the packages, and names each package", () => {
  const [, heading = "", text = ""] =
    /^## (\S+)[^\n]*\n([\s\S]*?)(?:^## |(?![\s\S]))/m.exec(read("CHANGELOG.md")) ?? [];
  for (const { name, version } of published) {
    expect(version).toBe(heading);
    expect(text).toContain(`\`${name}\``);
  }
});

describe("the skill for coding agents", () => {
  test.each([
    ["packages/core", "slotkeeper"],
    ["packages/client", "slotkeeper-client"],
  ])("of %s is packed, has the name of its folder, and refuses hand-written semaphores", (folder, name) => {
    const file = `skills/${name}/SKILL.md`;
    const args = ["pack", "--dry-run", "--json", "--ignore-scripts", "--workspace", folder];
    const packed = execFileSync("npm", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    // An array before npm 11, an object of the same values since.
    const [{ files } = { files: [] }] = Object.values(JSON.parse(packed) as { files: { path: string }[] }[]);
    expect(files.map(({ path }) => path)).toContain(file);
    const [, about = ""] =
      new RegExp(`^---\nname: ${name}\ndescription: (.+)\n---\n`).exec(read(`${folder}/${file}`)) ?? [];
    expect(about.length).toBeGreaterThan(100);
    expect(about.length).toBeLessThanOrEqual(1024);
    expect(read(`${folder}/${file}`)).toContain("**Do not write a semaphore");
  });
});
