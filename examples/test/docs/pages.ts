/** The Markdown pages of the repository: their headings, links and code blocks. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** A fenced code block, with the HTML comment on the line before it. */
export interface CodeBlock {
  readonly page: string;
  readonly line: number;
  readonly language: string;
  readonly code: string;
  readonly comment: string;
}

export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  /** The page without code: neither blocks nor spans. */
  readonly prose: string;
  readonly anchors: ReadonlySet<string>;
  readonly blocks: readonly CodeBlock[];
}

const FENCE = /^(?:<!-- (.*?) -->\n)?```(.*)\n([\s\S]*?)^```$/gm;

export function readPage(path: string): Page {
  const text = readFileSync(join(ROOT, path), "utf8");
  const blocks = [...text.matchAll(FENCE)].map(([, comment = "", language = "", code = ""], index) => {
    const at = [...text.matchAll(FENCE)][index]?.index ?? 0;
    return { page: path, line: text.slice(0, at).split("\n").length, language, code, comment };
  });
  const withoutBlocks = text.replaceAll(FENCE, "");
  return {
    path,
    text,
    prose: withoutBlocks.replaceAll(/`[^`\n]*`/g, "`code`"),
    anchors: anchorsOf(withoutBlocks),
    blocks,
  };
}

/** What GitHub makes of headings: lower case, without punctuation, dashes for blanks, a number where one repeats. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Every page that people read: the root's, those of `docs`, and each README. */
export function allPages(): Page[] {
  const files = ["", "docs", "examples", "packages", "python", "bench", "deploy"].flatMap((folder) =>
    markdownIn(join(ROOT, folder), folder === ""),
  );
  return files.sort().map((file) => readPage(relative(ROOT, file)));
}

function markdownIn(folder: string, isFlat: boolean): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return isFlat || /^(?:node_modules|dist.*|\.vitepress)$/.test(entry.name) ? [] : markdownIn(path, false);
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

export interface Link {
  readonly page: string;
  readonly target: string;
  /** The file it points to, from the root; the page itself for `#anchor`. */
  readonly file: string;
  readonly anchor: string;
}

/** Links and images to files of the repository. */
export function internalLinks({ path, prose }: Page): Link[] {
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)].map(([, a, b]) => a ?? b ?? "");
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = "", anchor = ""] = target.split("#");
      return { page: path, target, file: file === "" ? path : join(dirname(path), file), anchor };
    });
}
