/** Compiles and runs the JavaScript and TypeScript blocks of the pages, each as a program of its own. */
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { type CodeBlock, ROOT } from "./pages.ts";

/** Inside the workspace, so that imports resolve; git and the formatter ignore it. */
const FOLDER = join(ROOT, "examples/dist-test/docs-blocks");

const OPTIONS = {
  target: "es2023",
  module: "nodenext",
  lib: ["es2023", "esnext.disposable", "dom", "dom.iterable"],
  types: ["node"],
  noEmit: true,
  skipLibCheck: true,
};

/** Plain JavaScript has no types for its parameters; everything else is checked. */
const PROJECTS = {
  ts: { ...OPTIONS, strict: true },
  js: { ...OPTIONS, allowJs: true, checkJs: true, strict: false },
};

export function isProgram({ language }: CodeBlock): boolean {
  return language === "ts" || language === "js";
}

export function nameOf({ page, line }: CodeBlock): string {
  return `${page}:${line}`;
}

function fileOf(block: CodeBlock): string {
  return join(
    FOLDER,
    block.language,
    `${nameOf(block).replaceAll(/[/.:]/g, "_")}.${block.language === "ts" ? "mts" : "mjs"}`,
  );
}

/** Type-checks all blocks at once; the compiler's messages name page and line. */
export function compileAll(blocks: readonly CodeBlock[]): string[] {
  rmSync(FOLDER, { recursive: true, force: true });
  return Object.entries(PROJECTS).flatMap(([language, compilerOptions]) => {
    const folder = join(FOLDER, language);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["."] }));
    for (const block of blocks)
      if (block.language === language) writeFileSync(fileOf(block), `${block.code}\nexport {};\n`);
    const tsc = ["--no-install", "tsc", "-p", folder, "--pretty", "false"];
    const { stdout, status } = spawnSync("npx", tsc, { cwd: ROOT, encoding: "utf8" });
    return status === 0 ? [] : stdout.trim().split("\n");
  });
}

/** Replaces addresses of the text by those of the test. */
export type Addresses = Readonly<Record<string, string>>;

/** Runs a block on the built packages, as its reader does; resolves with what it prints, rejects if it fails or does not end. */
export async function run(block: CodeBlock, addresses: Addresses): Promise<string> {
  const { code } = await transform(withAddresses(block, addresses), {
    loader: block.language === "ts" ? "ts" : "js",
    target: "node20",
  });
  const file = `${fileOf(block)}.run.mjs`;
  writeFileSync(file, code);
  return (await promisify(execFile)(process.execPath, [file], { cwd: FOLDER, timeout: 20_000 })).stdout;
}

/** Runs a block with the Python client of this checkout. */
export async function runPython(block: CodeBlock, addresses: Addresses): Promise<string> {
  const env = { ...process.env, PYTHONPATH: join(ROOT, "python/src"), PYTHONDONTWRITEBYTECODE: "1" };
  const args = ["-c", withAddresses(block, addresses)];
  return (await promisify(execFile)("python3", args, { env, timeout: 20_000 })).stdout;
}

function withAddresses({ code }: CodeBlock, addresses: Addresses): string {
  return Object.entries(addresses).reduce((source, [from, to]) => source.replaceAll(from, to), code);
}
