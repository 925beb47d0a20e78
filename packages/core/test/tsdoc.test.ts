// Every export of every entry is explained where editors show it, and the examples there compile as pasted.
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const packageRoot = fileURLToPath(new URL("../", import.meta.url));
const manifest = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as {
  exports: Record<string, { "@slotkeeper/source"?: string }>;
};
const entries = Object.values(manifest.exports).flatMap((entry) => entry["@slotkeeper/source"] ?? []);

interface Exported {
  readonly name: string;
  readonly kind: string;
  readonly file: string;
  readonly comment: string;
  readonly body: string;
}

/** A declaration, the comment right before it, and its members up to the brace that closes it. */
function declarationOf(name: string, file: string): Exported {
  const source = readFileSync(file, "utf8");
  const declaration = new RegExp(
    `^(/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?export (?:abstract |async )*(class|interface|type|const|function) ${name}\\b((?:(?!\\n\\}|\\{\\}\\n)[^])*)`,
    "m",
  );
  const [, comment = "", kind = "", body = ""] = declaration.exec(source) ?? [];
  return { name, kind, file: relative(packageRoot, file), comment, body };
}

/** Entries only re-export: `export { a, type B } from "./file.ts"`. */
function exportsOf(entry: string): Exported[] {
  const path = join(packageRoot, entry);
  const lists = readFileSync(path, "utf8").matchAll(/^export (?:type )?\{([^}]*)\} from "(.+)"/gm);
  return [...lists].flatMap(([, names = "", from = ""]) =>
    [...names.matchAll(/(\w+)\s*(?:,|$)/g)].map(([, name = ""]) => declarationOf(name, join(dirname(path), from))),
  );
}

const examplesIn = (comment: string): string[] =>
  [...comment.matchAll(/@example\n\s*\* ```ts\n([^]*?)\n\s*\* ```/g)].map(([, lines = ""]) =>
    lines.replaceAll(/^\s*\* ?/gm, ""),
  );

/** Members of a class or interface with no comment right before them. */
const silentMembers = (body: string): string[] =>
  [
    ...body.matchAll(/(?<!\*\/)\n {2}(?:static |readonly |override |async |get )*(?!constructor)([a-z]\w*)\??[(<:]/g),
  ].map(([, member = ""]) => member);

describe.each(entries)("%s", (entry) => {
  const exported = exportsOf(entry);

  test("has a declaration for everything it exports", () => {
    expect(exported.length).toBeGreaterThan(0);
    expect(exported.filter(({ kind }) => kind === "")).toEqual([]);
  });

  test("says what each export is", () => {
    const silent = exported.filter(({ comment }) => !/[a-z]/i.test(comment));
    expect(silent.map(({ name, file }) => `${name} in ${file}`)).toEqual([]);
  });

  test("says what each option and each member of a class is", () => {
    const explained = exported.filter(
      ({ kind, name }) => kind === "class" || (kind === "interface" && /(Options|Settings|Update)$/.test(name)),
    );
    const silent = explained.flatMap(({ name, body }) => silentMembers(body).map((member) => `${name}.${member}`));
    expect(silent).toEqual([]);
  });

  test("shows an example of each class, function and constant", () => {
    const values = exported.filter(({ kind }) => kind !== "interface" && kind !== "type");
    const bare = values.filter(({ comment }) => examplesIn(comment).length === 0);
    expect(bare.map(({ name, file }) => `${name} in ${file}`)).toEqual([]);
  });
});

test("every example compiles as pasted", { timeout: 120_000 }, async () => {
  const files = [...new Set(entries.flatMap(exportsOf).map(({ file }) => file))];
  const examples = files.flatMap((file) => examplesIn(readFileSync(join(packageRoot, file), "utf8")));
  expect(examples.length).toBeGreaterThan(60);
  mkdirSync(join(packageRoot, "dist-test"), { recursive: true });
  // Inside the package, so that its name means itself.
  const folder = await mkdtemp(join(packageRoot, "dist-test/examples-"));
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
      rootDir: "../..",
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const compiler = fileURLToPath(new URL("../../../node_modules/typescript/bin/tsc", import.meta.url));
    const compiled = promisify(execFile)(process.execPath, [compiler, "-p", folder]);
    const { stdout } = await compiled.catch((error: { stdout: string }) => error);
    expect(stdout).toBe("");
  } finally {
    await rm(folder, { recursive: true });
  }
});
