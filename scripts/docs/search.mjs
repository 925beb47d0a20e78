// The search of the documentation site: one entry for each section of a page, and for each table row that explains a name.
// VitePress sends `tokenize`, `boostDocument` and `fuzzy` to the browser as text, so they use nothing outside of themselves.

/** The words of a text, and names such as `ACQUIRE_TIMEOUT` or `breaker.openSeconds` also as a whole. */
const tokenize = (text) => [
  ...text.split(/[\s\p{P}\p{S}]+/u),
  ...(text.match(/[\p{L}\p{N}]+(?:[_.-][\p{L}\p{N}]+)+/gu) ?? []),
];

export const SEARCH = {
  detailedView: true,
  miniSearch: {
    options: { tokenize },
    searchOptions: {
      // A section or row that begins with the term defines it. The benchmarks would hide the pages that explain it.
      boostDocument: (id, term, { title }) => {
        if (id.includes("reference/benchmarks")) return 0.05;
        return title.toLowerCase().startsWith(term) ? 4 : 1;
      },
      boost: { title: 4, titles: 2, text: 1 },
      prefix: true,
      weights: { prefix: 0.1, fuzzy: 0.1 },
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      combineWith: "AND",
    },
    _splitIntoSections: sectionsOf,
  },
};

/** `[{ anchor, titles, text }]`; the last of `titles` is the section's own. */
function sectionsOf(path, html) {
  const above = [];
  return html.split(/(?=<h[1-6] id=")/).flatMap((part) => {
    const [whole, level, anchor, heading] = /^<h([1-6]) id="([^"]+)"[^>]*>(.*?)<\/h\1>/s.exec(part) ?? [];
    if (whole === undefined) return [];
    above.length = Number(level) - 1;
    above.push(plain(heading.replace(/<a class="header-anchor".*/s, "")));
    const titles = above.filter(Boolean);
    return [{ anchor, titles, text: plain(part.slice(whole.length)) }, ...rowsOf(path, titles, part)];
  });
}

/** Pages whose tables define names: keys, codes, metrics, words. */
const DEFINES_NAMES = /\/(?:glossary|reference\/(?!benchmarks)[^/]+)\.md$/;

/** VitePress shows excerpts of sections only, so the title of a row also says what the row says. */
function rowsOf(path, titles, part) {
  if (!DEFINES_NAMES.test(path)) return [];
  return [...part.matchAll(/<tr id="([^"]+)">(.*?)<\/tr>/gs)].map(([, anchor, row]) => {
    const cells = row.split("</td>").map(plain).filter(Boolean);
    return { anchor, titles: [...titles, shortened(cells.join(" · "))], text: cells.join(" ") };
  });
}

const shortened = (text) => (text.length > 160 ? `${text.slice(0, text.lastIndexOf(" ", 160))} …` : text);

/** Without tags. Characters such as `<` stay escaped, because titles are shown as HTML. */
function plain(html) {
  return html
    .replaceAll(/<\/?(?:a|code|em|strong|wbr)\b[^>]*>/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
