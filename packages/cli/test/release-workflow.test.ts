// The release workflow cannot run here: this checks its rights, its pins and its commands.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Record<string, unknown>;
}
interface Job {
  readonly permissions: Record<string, string>;
  readonly steps: readonly Step[];
}

const root = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const text = readFileSync(root(".github/workflows/release.yml"), "utf8");
const { permissions, jobs } = parse(text) as { permissions: object; jobs: Record<"pack" | "publish" | "tag", Job> };
const runs = ({ steps }: Job): string[] => steps.flatMap(({ run }) => run ?? []);

describe("the release workflow", () => {
  it("pins every action by its commit, and names the version", () => {
    const uses = [...text.matchAll(/uses: (.*)/g)].map(([, action = ""]) => action);
    expect(uses.length).toBeGreaterThan(0);
    for (const action of uses) expect(action).toMatch(/^actions\/[\w-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("gives each job one right, and none to the workflow", () => {
    expect(permissions).toEqual({});
    expect(Object.entries(jobs).map(([name, job]) => [name, job.permissions])).toEqual([
      ["pack", { contents: "read" }],
      ["publish", { contents: "read", "id-token": "write" }],
      ["tag", { contents: "write" }],
    ]);
  });

  it("stores no token, and leaves none of its own in the checkout", () => {
    expect(text).not.toContain("secrets.");
    for (const { uses, with: options } of Object.values(jobs).flatMap(({ steps }) => steps)) {
      if (uses?.startsWith("actions/checkout@")) expect(options?.["persist-credentials"]).toBe(false);
    }
  });

  it("fills and checks the lock file before it installs, and publishes only what it packed and tested", () => {
    expect(runs(jobs.pack)).toEqual([
      "node scripts/complete-lock.mjs --fill",
      "node scripts/complete-lock.mjs --check",
      ".ci/run",
      "npm run release:pack",
    ]);
    expect(runs(jobs.publish)).toEqual(["npm run release:publish"]);
    const { scripts } = JSON.parse(readFileSync(root("package.json"), "utf8")) as { scripts: Record<string, string> };
    expect(scripts["release:pack"]).toBe("node scripts/test-packages.mjs --release release");
    expect(scripts["release:publish"]).toBe("node scripts/publish-packed.mjs release");
    for (const script of ["test-packages", "publish-packed"])
      expect(existsSync(root(`scripts/${script}.mjs`))).toBe(true);
  });
});
