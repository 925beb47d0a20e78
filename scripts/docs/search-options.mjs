// How the documentation is searched, at build time and in the browser.

const SEPARATORS = /[\s\p{P}\p{S}]+/u;
const JOINED_NAMES = /[\p{L}\p{N}]+(?:[_.-][\p{L}\p{N}]+)+/gu;

/** The words of a text, and names such as `ACQUIRE_TIMEOUT` or `breaker.openSeconds` also as a whole. */
const tokenize = (text) => [...text.split(SEPARATORS), ...(text.match(JOINED_NAMES) ?? [])];

export const SEARCH_OPTIONS = {
  fields: ["title", "page", "text"],
  storeFields: ["title", "page"],
  tokenize,
  searchOptions: {
    // The rows of the benchmarks have short titles, and would hide the pages that explain the same words.
    boostDocument: (id) => (id.startsWith("reference/benchmarks") ? 0.05 : 1),
    boost: { title: 4, page: 2 },
    prefix: true,
    weights: { prefix: 0.1, fuzzy: 0.1 },
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    combineWith: "AND",
  },
};
