// The search index: one entry for each section of a page, and for each table row that explains a name. The options are
// shared with the page's own script.
import MiniSearch from "minisearch";
import { SEARCH_OPTIONS } from "./search-options.mjs";

/** `pages` with `html` and `headings`; returns the index as JSON. */
export function searchIndex(pages) {
  const index = new MiniSearch(SEARCH_OPTIONS);
  index.addAll(pages.flatMap(sectionsOf));
  return JSON.stringify(index);
}

function sectionsOf({ page, html }) {
  const parts = html.split(/(?=<h[123] id=")/);
  return parts.flatMap((part) => {
    const [, id, heading] = /^<h[123] id="([^"]+)">(.*?)<\/h[123]>/s.exec(part) ?? [];
    if (id === undefined) return [];
    const title = plain(heading.replace(/<a class="anchor".*?<\/a>/, ""));
    const text = plain(part.replace(/^<h[123].*?<\/h[123]>/s, ""));
    return [{ id: `${page.output}#${id}`, title, page: page.title, text }, ...rowsOf(page, title, part)];
  });
}

/** Pages whose tables define names: keys, codes, metrics, words. */
const DEFINES_NAMES = /^(?:glossary|reference\/(?!benchmarks).*)\.html$/;

function rowsOf(page, section, part) {
  if (!DEFINES_NAMES.test(page.output)) return [];
  return [...part.matchAll(/<tr id="([^"]+)">(.*?)<\/tr>/gs)].map(([, id, row]) => {
    const [title = "", ...rest] = row.split("</td>").map(plain);
    return { id: `${page.output}#${id}`, title, page: `${page.title} › ${section}`, text: rest.join(" ") };
  });
}

function plain(html) {
  return html
    .replaceAll(/<\/?(?:a|code|em|strong|wbr)\b[^>]*>/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ")
    .trim();
}
