/** Plain words: pages, comments, messages, test titles and names use the usual terms of the field, and no riddles. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { AVOIDED, EXCEPTIONS, linesWith } from "./avoided-words.ts";
import { allPages, ROOT } from "./pages.ts";
import { sourceFiles } from "./sources.ts";

const SOURCES = /\.(?:tsx?|m?js|py|sql|css|html|ya?ml|service|conf)$|^Dockerfile/;

/** Pages without their code, which must not rename what others named; everything else whole. */
const texts = [
  ...allPages().map(({ path, prose }) => ({ path, text: prose })),
  ...sourceFiles(SOURCES).map((path) => ({ path, text: readFileSync(join(ROOT, path), "utf8") })),
];

const uses = AVOIDED.map(([pattern, instead]) => ({
  pattern,
  instead,
  found: texts.flatMap(({ path, text }) =>
    linesWith(pattern, text).map(([number, line]) => ({
      place: `${path}:${number}: ${line}`,
      exception: EXCEPTIONS.find((one) => one.path === path && one.text.test(line)),
    })),
  ),
}));

describe("no page, comment, message, title or name", () => {
  test.each(uses)("says $pattern; write: $instead", ({ found }) => {
    expect(found.filter(({ exception }) => exception === undefined).map(({ place }) => place)).toEqual([]);
  });
});

test("each exception is still needed", () => {
  const needed = new Set(uses.flatMap(({ found }) => found.map(({ exception }) => exception)));
  expect(EXCEPTIONS.filter((exception) => !needed.has(exception))).toEqual([]);
});

test.each([
  ["a comment", "// whoever asks first"],
  ["a title", 'test("is told at once", () => {'],
  ["a type", "import type { News } from"],
  ["a part of a name", "const firstNewsAt = session.isHeard;"],
  ["a private field", "#toldOf = new Map()"],
  ["a constant", "const TOLD_AT_MOST = 16;"],
  ["a variable in SQL", "v_news text := ''"],
  ["an acronym before a word", "readonly HTTPNews: string;"],
])("finds an avoided word in %s", (_, line) => {
  expect(AVOIDED.some(([pattern]) => linesWith(pattern, line).length > 0)).toBe(true);
});

test.each(["newSessionId", "unless it renews", "newSecret", "a shear pin"])("lets %s pass", (line) => {
  expect(AVOIDED.some(([pattern]) => linesWith(pattern, line).length > 0)).toBe(false);
});
