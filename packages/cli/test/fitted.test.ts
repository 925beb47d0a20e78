import { expect, test } from "vitest";
import { alignedRows, fitted } from "../src/table.ts";

test.each([
  ["abc", 5, "abc  "],
  ["abcdef", 4, "abc…"],
  ["日本語", 6, "日本語"],
  ["日本語", 5, "日本…"],
  // A wide character that does not fit leaves a column free.
  ["日本語", 4, "日… "],
  ["e\u0301tude", 5, "e\u0301tude"],
  ["e\u0301tude", 3, "e\u0301t…"],
  // An emoji of older blocks, and one of several code points.
  ["⌚⭐", 4, "⌚⭐"],
  ["👍🏽👍🏽", 4, "👍🏽👍🏽"],
  ["🇩🇪🇫🇷", 3, "🇩🇪…"],
  ["anything", 0, ""],
])("%s in %d columns is %s", (text, columns, expected) => {
  expect(fitted(text, columns)).toBe(expected);
});

test("numbers are padded at the beginning", () => {
  expect(fitted("42", 4, "end")).toBe("  42");
});

test("the columns of a table are aligned after wide names", () => {
  expect(
    alignedRows([
      ["日本", "1"],
      ["abc", "2"],
    ]),
  ).toBe("日本  1\nabc   2\n");
});
