// Which Markdown files become pages of the site, and where; the lists of them.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const HOME = "README.md";
/** The one list of pages, with sections. */
const INDEX = "docs/README.md";

const OTHER_PLACES = {
  [HOME]: "index.md",
  [INDEX]: "contents.md",
  "CONTRIBUTING.md": "contributing.md",
  "SECURITY.md": "security.md",
  "CHANGELOG.md": "changes.md",
};

const placeOf = (source) => OTHER_PLACES[source] ?? source.replace(/^docs\//, "").replace(/README\.md$/, "index.md");

function markdownIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(?:dist|\.vitepress)$/.test(entry.name) ? [] : markdownIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** `[{ source, output, markdown, title }]`: where a page is in the repository, and where the site has it. */
export function repositoryPages(root) {
  const sources = [
    ...Object.keys(OTHER_PLACES).filter((source) => !source.startsWith("docs/")),
    ...markdownIn(join(root, "docs")).map((path) => relative(root, path)),
  ];
  return sources.map((source) => pageOf(source, readFileSync(join(root, source), "utf8")));
}

export function pageOf(source, markdown) {
  const title = /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll("`", "") ?? source;
  return { source, output: placeOf(source), markdown, title };
}

const pageAt = (pages, source) => pages.find((page) => page.source === source);

/** The sentence in bold at the top of the README. */
export const summaryOf = (pages) => /^\*\*(.+)\*\*$/m.exec(pageAt(pages, HOME).markdown)[1];

const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The sections of the index: `[{ title, links: [{ text, output, about }] }]`, each page once, and the API reference. */
export function sectionsOf(pages) {
  /** @type {{ title: string, links: { text: string, output: string, about: string }[] }[]} */
  const sections = [];
  const listed = new Set();
  for (const line of pageAt(pages, INDEX).markdown.split("\n")) {
    if (line.startsWith("## ")) sections.push({ title: line.slice(3), links: [] });
    for (const [, text, target, about = ""] of line.matchAll(/\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)(?:: ([^[]+))?/g)) {
      const output = placeOf(join(dirname(INDEX), target));
      if (sections.length === 0 || listed.has(output)) continue;
      listed.add(output);
      sections.at(-1).links.push({ text: capitalised(text.replaceAll("`", "")), output, about: about.trim() });
    }
  }
  const api = pages
    .filter(({ output }) => output.startsWith("api/"))
    .map(({ title, output }) => ({ text: title.replace("API: ", ""), output, about: "every export" }));
  const at = sections.findIndex(({ title }) => title === "Reference");
  sections.splice(at, 0, { title: "API", links: api });
  return sections;
}

/** The sidebar of VitePress, which also decides which page is the previous and the next one. The section of a page is open. */
export function sidebarOf(pages) {
  return sectionsOf(pages).map(({ title, links }, index) => ({
    text: title,
    collapsed: index > 0,
    items: links.map(({ text, output }) => ({ text, link: `/${output}` })),
  }));
}
