// The search index: one entry for each section of a page. The options are shared with the page's own script.
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
    const title = plain(heading).replace(/^#/, "");
    const text = plain(part.replace(/^<h[123].*?<\/h[123]>/s, ""));
    return [{ id: `${page.output}#${id}`, title, page: page.title, text }];
  });
}

function plain(html) {
  return html
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .replaceAll(/\s+/g, " ")
    .trim();
}
