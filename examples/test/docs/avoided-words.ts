/** What a reader would stumble over, and what to write instead. The contributing guide says why. */
export const AVOIDED: readonly (readonly [RegExp, string])[] = [
  [/\bwhoever\b/i, "the caller, the client, any waiter"],
  [/\b(?:nobody|somebody|everybody|anybody)\b/i, "no caller, a caller, all callers, any caller"],
  [/\bso many\b/i, "a number, a limit"],
  [/\b(?:hears?|heard|hearing|deaf)\b/i, "receives, gets"],
  [/\b(?:tells?|told|untold|telling)\b/i, "reports, shows, sends"],
  [/\bnews\b/i, "changes, notifications"],
  [/\bletters?\b/i, "messages; of the alphabet: characters"],
  [/\bbrings? home\b/i, "applies, returns"],
  [/\bwhat cannot be\b/i, "invalid combinations"],
  [/\bnow[ -]or[ -]never\b/i, "does not wait"],
];

/** Places that need one of these words. An entry that matches nothing any more fails the test. */
export const EXCEPTIONS: readonly { readonly path: string; readonly text: RegExp; readonly reason: string }[] = [
  {
    path: "packages/testkit/bin/postgres-keeper.mjs",
    text: /\bNOBODY\b|"nobody"/,
    reason: "the name of a user account of the operating system",
  },
  {
    path: "scripts/test-pooler.mjs",
    text: /\bNOBODY\b/,
    reason: "the name of a user account of the operating system",
  },
  { path: "examples/test/docs/avoided-words.ts", text: /\S/, reason: "the list itself" },
  { path: "examples/test/docs/words.test.ts", text: /^\["an? /, reason: "samples that the check must find" },
];

/** Names as words: `newsOf`, `#isTold` and `v_news` are checked like a sentence. */
function asWords(line: string): string {
  return line.replaceAll(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ").replaceAll("_", " ");
}

/** The lines of a text that use an avoided word, with their numbers. Texts without one, nearly all, are searched once as a whole. */
export function linesWith(pattern: RegExp, text: string): (readonly [number: number, line: string])[] {
  const words = asWords(text);
  if (!pattern.test(words)) return [];
  const lines = text.split("\n");
  return words
    .split("\n")
    .flatMap((line, index) => (pattern.test(line) ? [[index + 1, (lines[index] ?? "").trim()]] : []));
}
