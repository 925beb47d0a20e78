/** Every export of every package is explained where editors show it, and the examples there compile as pasted. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { entriesOf, examplesIn, exportsOf, silentMembers } from "./exported.ts";
import { ROOT } from "./pages.ts";

/** The library shows an example of each value; of the other packages these are what programs begin with. */
const STARTING_POINTS: { readonly [folder: string]: readonly string[] | "all" } = {
  core: "all",
  client: ["SlotClient"],
  queue: ["FairQueue"],
  postgres: ["PostgresStore", "PostgrestStore", "migrate"],
  server: ["Service", "diagnose", "loadConfig"],
  protocol: ["blockedByWords"],
};

/** Classes whose members have their comments elsewhere. */
const EXPLAINED_ELSEWHERE: { readonly [name: string]: string } = {
  MemoryStore: "its members are those of the port `HostStore`, where they are explained",
  Book: "the engine's own: what its folder may do is in the promises at its top",
};

const packages = Object.keys(STARTING_POINTS);
const entries = packages.flatMap((folder) => entriesOf(folder).map((entry) => ({ folder, entry })));

/** For use by the packages of this repository. */
const isPart = (entry: string) => entry.endsWith("/parts.ts");

/** For use by this repository's own tests, apart from the main entry and the library's. */
const isPublic = ({ folder, entry }: { folder: string; entry: string }) =>
  (folder === "core" && !isPart(entry)) || entry.endsWith("src/index.ts");

describe.each(entries)("$entry", ({ folder, entry }) => {
  const exported = exportsOf(entry);

  test("has a declaration for everything it exports", () => {
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter(({ kind }) => kind === "")).toEqual([]);
  });

  test("says what each export is", () => {
    const silent = exported.filter(({ comment }) => !/[a-z]/i.test(comment));
    expect(silent.map(({ name, file }) => `${name} in ${file}`)).toEqual([]);
  });

  test.runIf(isPublic({ folder, entry }))("says what each option and each member of a class is", () => {
    const isOptions = /(?:Options|Settings|Update|Init)$/;
    const explained = exported.filter(
      ({ kind, name }) =>
        (kind === "class" && EXPLAINED_ELSEWHERE[name] === undefined) || (kind === "interface" && isOptions.test(name)),
    );
    const silent = explained.flatMap(({ name, body }) => silentMembers(body).map((member) => `${name}.${member}`));
    expect(silent).toEqual([]);
  });
});

test.each(packages)("packages/%s shows an example of what programs begin with", (folder) => {
  const exported = entriesOf(folder)
    .filter((entry) => !isPart(entry))
    .flatMap(exportsOf);
  const wanted = STARTING_POINTS[folder];
  const values = exported.filter(({ kind, name }) =>
    wanted === "all" ? kind !== "interface" && kind !== "type" : wanted?.includes(name),
  );
  expect(values.length).toBeGreaterThanOrEqual(wanted === "all" ? 1 : (wanted?.length ?? 0));
  const bare = values.filter(({ comment }) => examplesIn(comment).length === 0);
  expect(bare.map(({ name, file }) => `${name} in ${file}`)).toEqual([]);
});

test("every example compiles as pasted", async () => {
  const files = [...new Set(entries.flatMap(({ entry }) => exportsOf(entry)).map(({ file }) => file))];
  const examples = files.flatMap((file) => examplesIn(readFileSync(join(ROOT, file), "utf8")));
  expect(examples.length).toBeGreaterThan(70);
  mkdirSync(join(ROOT, "examples/dist-test"), { recursive: true });
  // Inside the workspace, so that the packages' names resolve.
  const folder = await mkdtemp(join(ROOT, "examples/dist-test/tsdoc-"));
  try {
    await Promise.all(examples.map((code, index) => writeFile(join(folder, `example-${index}.ts`), `${code}\n`)));
    const compilerOptions = {
      target: "es2022",
      module: "nodenext",
      lib: ["es2023", "esnext.disposable", "dom"],
      types: ["node"],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      customConditions: ["@slotkeeper/source"],
      rootDir: ROOT,
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const compiled = promisify(execFile)(process.execPath, [compiler, "-p", folder], { cwd: ROOT });
    const { stdout } = await compiled.catch((error: { stdout: string }) => error);
    // The packages' own sources have other settings, and are compiled by the build.
    expect(stdout.split("\n").filter((line) => line !== "" && !line.startsWith("packages/"))).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
