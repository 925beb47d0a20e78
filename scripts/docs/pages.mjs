// Which Markdown files become pages of the site, and where.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Pages of the repository's root; the README is the home page. */
const ROOT_PAGES = {
  "README.md": "index.html",
  "docs/README.md": "contents.html",
  "CONTRIBUTING.md": "contributing.html",
  "SECURITY.md": "security.html",
  "CHANGELOG.md": "changes.html",
};

function outputOf(source) {
  return (
    ROOT_PAGES[source] ??
    source
      .replace(/^docs\//, "")
      .replace(/README\.md$/, "index.html")
      .replace(/\.md$/, ".html")
  );
}

function markdownIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "dist" ? [] : markdownIn(path);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

/** `[{ source, output, markdown, title }]`. */
export function repositoryPages(root) {
  const sources = [
    ...Object.keys(ROOT_PAGES).filter((source) => !source.startsWith("docs/")),
    ...markdownIn(join(root, "docs")).map((path) => relative(root, path)),
  ];
  return sources.map((source) => pageOf(source, readFileSync(join(root, source), "utf8")));
}

export function pageOf(source, markdown) {
  const title = /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll("`", "") ?? source;
  return { source, output: outputOf(source), markdown, title };
}

const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The sidebar: sections and links of the index, which is the one list of pages. */
export function navigation(index, apiPages) {
  const sections = [];
  for (const line of index.markdown.split("\n")) {
    if (line.startsWith("## ")) sections.push({ title: line.slice(3), links: [] });
    for (const [, text, target] of line.matchAll(/\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      const output = outputOf(join(dirname(index.source), target));
      const section = sections.at(-1);
      if (section !== undefined && !section.links.some((link) => link.output === output))
        section.links.push({ text: capitalised(text.replaceAll("`", "")), output });
    }
  }
  const reference = sections.find(({ title }) => title === "Reference");
  reference?.links.unshift(...apiPages.map(({ name, output }) => ({ text: `API: ${name}`, output })));
  return sections;
}
