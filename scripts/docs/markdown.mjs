// The Markdown of the site: each page with links that work where the site has it, for VitePress and for readers of
// Markdown, and `llms.txt`, the list of all pages.
import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { sectionsOf, summaryOf } from "./pages.mjs";

/** Writes every page into `folder`, with the pictures and sources that it links to. */
export function writePages(root, pages, folder) {
  rmSync(folder, { recursive: true, force: true });
  const outputs = new Map(pages.map(({ source, output }) => [source, output]));
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };

  /** Where the site has a file of the repository: pictures as they are, sources as text. */
  const outputOf = (source) => {
    const known = outputs.get(source);
    if (known !== undefined) return known;
    if (statSync(join(root, source), { throwIfNoEntry: false })?.isFile() !== true) return undefined;
    const isPicture = /\.(?:png|svg)$/.test(source);
    const output = isPicture ? source.replace(/^docs\//, "") : `files/${source}.txt`;
    cpSync(join(root, source), join(folder, isPicture ? output : `public/${output}`));
    outputs.set(source, output);
    return output;
  };

  for (const { source, output, markdown } of pages) {
    const targetOf = (target) => {
      const [path, fragment] = target.split("#");
      const found = path === "" || /^[a-z]+:/.test(path) ? undefined : outputOf(join(dirname(source), path));
      if (found === undefined) return target;
      const local = relative(dirname(output), found);
      return `${local.startsWith(".") ? "" : "./"}${local}${fragment === undefined ? "" : `#${fragment}`}`;
    };
    write(output, withTargets(withSwitch(markdown.replaceAll(/^<!--[\s\S]*?-->\n/gm, "")), targetOf));
  }
}

/** A picture for each colour scheme: GitHub asks the system, the site has a switch of its own. */
function withSwitch(markdown) {
  return markdown.replaceAll(
    /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*<\/picture>/g,
    '<img class="light-only" alt="$2" src="$3"><img class="dark-only" alt="$2" src="$1">',
  );
}

/** Code is left as it is. */
function withTargets(markdown, targetOf) {
  const parts = markdown.split(/(^```[\s\S]*?^```$|`[^`\n]*`)/m);
  return parts
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part
            .replaceAll(/\]\(([^)\s]+)\)/g, (_, target) => `](${targetOf(target)})`)
            .replaceAll(/\bsrc="([^"]+)"/g, (_, target) => `src="${targetOf(target)}"`),
    )
    .join("");
}

/** Each page as Markdown beside its HTML, and `llms.txt`. */
export function copyMarkdown(folder, outDir, llms) {
  cpSync(folder, outDir, { recursive: true, filter: (path) => path !== join(folder, "public") });
  writeFileSync(join(outDir, "llms.txt"), llms);
}

/** The list of all pages for language models, in the form of llmstxt.org: links to Markdown, with what each page has. */
export function llmsText(pages) {
  const lines = sectionsOf(pages).flatMap(({ title, links }) => [
    `## ${title}`,
    "",
    ...links.map(({ text, output, about }) => `- [${text}](${output})${about === "" ? "" : `: ${about}`}`),
    "",
  ]);
  return ["# Slotkeeper", "", `> ${summaryOf(pages)}`, "", ...lines].join("\n");
}
