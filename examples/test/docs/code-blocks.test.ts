/** Every code block of every page is compiled, run, validated or checked: what a reader pastes works. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configDocument } from "@slotkeeper/protocol/schemas";
import { loadConfig } from "@slotkeeper/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startService } from "../../../packages/client/test/fixture.ts";
import { allPages, type CodeBlock } from "./pages.ts";
import { type Addresses, compileAll, isProgram, nameOf, run, runPython } from "./programs.ts";
import { shellProblems } from "./shell-commands.ts";

const blocks = allPages().flatMap((page) => page.blocks);
const programs = blocks.filter(isProgram);
const HAS_PYTHON = spawnSync("python3", ["--version"]).status === 0;

/** A comment before the block says why it is not run here. `example:` and `file:` blocks are run by tests of their own. */
const isRun = ({ comment }: CodeBlock): boolean => !/^(?:compiled only: \S|example: |file: )/.test(comment);

test("every code block names its language", () => {
  const known = new Set(["ts", "js", "python", "json", "sh", "sql", "text", "http", "yaml"]);
  expect(
    blocks.filter(({ language }) => !known.has(language)).map((block) => `${nameOf(block)}: ${block.language}`),
  ).toEqual([]);
});

describe("programs", () => {
  let addresses: Addresses = {};
  const stops: (() => unknown)[] = [];

  beforeAll(async () => {
    const service = await startService({});
    const upstream = createServer((_request, response) => response.end("{}"));
    await new Promise<void>((listening) => upstream.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    addresses = { "http://127.0.0.1:8080": service.url, "https://api.example.com": url };
    stops.push(
      () => service.stop({ graceMs: 0, deadlineMs: 500 }),
      () => upstream.close(),
    );
  });
  afterAll(() => Promise.all(stops.map((stop) => stop())));

  test("compile, with their imports", () => {
    expect(compileAll(programs.filter(({ comment }) => !comment.startsWith("file: ")))).toEqual([]);
  });

  test.each(programs.filter(isRun).map((block) => [nameOf(block), block] as const))(
    "%s runs as pasted",
    async (_name, block) => {
      await expect(run(block, addresses)).resolves.toBeTypeOf("string");
    },
  );

  const python = blocks.filter(({ language }) => language === "python");
  test.skipIf(!HAS_PYTHON).each(python.map((block) => [nameOf(block), block] as const))(
    "%s runs as pasted",
    async (_name, block) => {
      await expect(runPython(block, addresses)).resolves.not.toBe("");
    },
  );
});

/** Pages whose files are used and commands run, from top to bottom, by `packages/cli/test/guides`. */
const RUN_AS_A_WHOLE = new Set(
  ["production", "from-original", "one-machine", "token-budgets", "shadow", "tenants-and-classes"].map(
    (name) => `docs/guides/${name}.md`,
  ),
);

describe("JSON", () => {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-docs-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  // A page may leave secrets to the environment.
  const environment = { SLOTKEEPER_AUTH__TOKEN: "a-key-of-at-least-16-characters" };
  const keys = new Set(Object.keys((configDocument() as { properties: object }).properties));
  const isConfig = (value: object): boolean => Object.keys(value).every((key) => keys.has(key));

  const checked = blocks.filter(({ language, page }) => language === "json" && !RUN_AS_A_WHOLE.has(page));
  test.each(checked.map((block) => [nameOf(block), block] as const))(
    "%s is valid, and a configuration is accepted by the service",
    (_name, { code }) => {
      const value = JSON.parse(code) as object;
      if (!isConfig(value)) return;
      const file = join(folder, "config.json");
      writeFileSync(file, code);
      expect(() => loadConfig({ file, environment })).not.toThrow();
    },
  );
});

describe("shell", () => {
  const checked = blocks.filter(({ language, page }) => language === "sh" && !RUN_AS_A_WHOLE.has(page));
  test.each(checked.map((block) => [nameOf(block), block] as const))(
    "%s uses scripts, files, flags and routes that exist",
    (_name, { code }) => {
      expect(shellProblems(code)).toEqual([]);
    },
  );
});
