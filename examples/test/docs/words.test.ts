/** Plain words: the pages use the usual terms of the field, and no riddles. `style.md` says why. */
import { expect, test } from "vitest";
import { allPages } from "./pages.ts";

/** What a reader would stumble over, and what to write instead. */
const AVOIDED: readonly (readonly [RegExp, string])[] = [
  [/\bwhoever\b/i, "the caller, the client, any waiter"],
  [/\b(?:nobody|somebody|everybody)\b/i, "no caller, a caller, all callers"],
  [/\bso many\b/i, "a number, a limit"],
  [/\b(?:hears?|heard)\b/i, "receives, gets"],
  [/\b(?:tells?|told|untold)\b/i, "reports, shows, sends"],
  [/\bnews\b/i, "changes, notifications"],
  [/\bletters?\b/i, "messages"],
  [/\bbrings? home\b/i, "applies, returns"],
  [/\bwhat cannot be\b/i, "invalid combinations"],
  [/\bnow or never\b/i, "does not wait"],
];

test.each(AVOIDED)("no page says %s; write: %s", (pattern) => {
  const found = allPages().flatMap(({ path, prose }) =>
    prose
      .split("\n")
      .flatMap((line, index) => (pattern.test(line) ? [`${path}: ${line.trim()} (line ${index + 1})`] : [])),
  );
  expect(found).toEqual([]);
});
