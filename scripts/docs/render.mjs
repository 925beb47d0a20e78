// Markdown to HTML: headings with anchors, links between pages, highlighted code, the page around it.
import { dirname, join, relative } from "node:path";
import hljs from "highlight.js";
import { Marked } from "marked";

const LANGUAGES = {
  ts: "typescript",
  js: "javascript",
  json: "json",
  sh: "bash",
  sql: "sql",
  http: "http",
  yaml: "yaml",
};

const escaped = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Creates anchors as GitHub does, so that links work in both places. */
function slugOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

/** Renders one page. `resolve(path)` returns the output of a file of the repository, or undefined. */
export function renderContent(page, resolve) {
  const headings = [];
  const used = new Map();
  const anchor = (text) => {
    const slug = slugOf(text);
    const count = used.get(slug) ?? 0;
    used.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  };
  const hrefOf = (target) => {
    if (/^[a-z]+:|^#/.test(target)) return target;
    const [path, fragment] = target.split("#");
    const output = resolve(join(dirname(page.source), path));
    if (output === undefined) return undefined;
    return `${relative(dirname(page.output), output)}${fragment === undefined ? "" : `#${fragment}`}`;
  };
  const renderer = {
    heading(html, depth, raw) {
      const id = anchor(raw.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
      headings.push({ id, depth, text: html.replaceAll(/<[^>]+>/g, "") });
      return `<h${depth} id="${id}"><a class="anchor" href="#${id}" aria-hidden="true" tabindex="-1">#</a>${html}</h${depth}>\n`;
    },
    code(code, language = "") {
      const known = LANGUAGES[language];
      const html =
        known === undefined ? escaped(code) : hljs.highlight(code, { language: known, ignoreIllegals: true }).value;
      return `<pre class="${known === undefined ? "plain" : "code"}" tabindex="0"><code>${html}</code></pre>\n`;
    },
    table: (header, body) =>
      `<div class="table" tabindex="0"><table><thead>${header}</thead><tbody>${body}</tbody></table></div>\n`,
    /** A row that explains a name, such as a configuration key, can be linked to. */
    tablerow(cells) {
      const [, name] = /^<td><(?:code|strong)>(.+?)<\/(?:code|strong)>/.exec(cells.trim()) ?? [];
      if (name === undefined) return `<tr>${cells}</tr>\n`;
      return `<tr id="${anchor(`row ${name.replaceAll("<wbr>", "")}`)}">${cells}</tr>\n`;
    },
    /** A long name in a narrow column may break after a dot or a comma. */
    tablecell(content, { header, align }) {
      const tag = header ? "th" : "td";
      const html = content.replaceAll(/(?<=<code>)[^<]+(?=<\/code>)/g, (name) =>
        name.replaceAll(/(?<=\w[.,])(?=\w)/g, "<wbr>"),
      );
      return `<${tag}${align ? ` align="${align}"` : ""}>${html}</${tag}>\n`;
    },
    link(href, _title, html) {
      const target = hrefOf(href);
      return target === undefined ? html : `<a href="${escaped(target)}">${html}</a>`;
    },
    image: (href, _title, alt) => `<img src="${escaped(hrefOf(href) ?? href)}" alt="${escaped(alt)}" loading="lazy">`,
  };
  const html = new Marked({ renderer, gfm: true }).parse(page.markdown.replaceAll(/^<!--[\s\S]*?-->\n/gm, ""));
  const withSources = html.replaceAll(/(src|srcset)="([^"]+)"/g, (whole, name, target) => {
    const found = hrefOf(target);
    return found === undefined ? whole : `${name}="${found}"`;
  });
  return { html: withSources, headings };
}

/** The whole document around the content. */
export function renderPage({ page, html, headings, sections }) {
  const to = (output) => relative(dirname(page.output), output) || page.output;
  const link = ({ text, output }) =>
    `<li><a href="${to(output)}"${output === page.output ? ' aria-current="page"' : ""}>${escaped(text)}</a></li>`;
  const nav = sections
    .map(({ title, links }) => `<h2>${escaped(title)}</h2><ul>${links.map(link).join("")}</ul>`)
    .join("");
  const toc = headings.filter(({ depth }) => depth === 2);
  const onPage =
    toc.length < 3
      ? ""
      : `<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>${toc.map(({ id, text }) => `<li><a href="#${id}">${text}</a></li>`).join("")}</ul></nav>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(page.title)}${page.output === "index.html" ? "" : " · Slotkeeper"}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to("assets/site.css")}">
<script defer src="${to("assets/search.js")}" data-root="${to("index.html").replace(/index\.html$/, "")}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="brand" href="${to("index.html")}">Slotkeeper</a>
<a href="${to("tutorial.html")}">Tutorial</a>
<a href="${to("contents.html")}">Contents</a>
<div class="search" role="search"><input id="search" type="search" placeholder="Search" aria-label="Search the documentation" autocomplete="off" aria-controls="results"><kbd>/</kbd><ul id="results" hidden></ul></div>
</header>
<div class="frame">
<details class="menu" open><summary>Menu</summary><nav aria-label="Pages">${nav}</nav></details>
<main id="content">
${html}
</main>
${onPage}
</div>
</body>
</html>
`;
}
