import { readFileSync } from "node:fs";

/** What a guide asks its reader to do, in order. */
export type GuideStep =
  /** A `sh` block. */
  | { readonly kind: "run"; readonly text: string }
  /** A block after the comment `<!-- file: NAME -->`. */
  | { readonly kind: "file"; readonly name: string; readonly text: string }
  /** A `text` block: what the commands before it print, in this order. `…` stands for anything. */
  | { readonly kind: "printed"; readonly text: string };

const BLOCK = /^(?:<!-- (.*?) -->\n)?```(\w+)\n([\s\S]*?)^```$/gm;

export function readGuide(name: string): GuideStep[] {
  const page = readFileSync(new URL(`../../../../docs/guides/${name}`, import.meta.url), "utf8");
  return [...page.matchAll(BLOCK)].flatMap(([, comment = "", language = "", text = ""]): GuideStep[] => {
    const file = /^file: (\S+)$/.exec(comment)?.[1];
    if (file !== undefined) return [{ kind: "file", name: file, text }];
    if (language === "sh" && !comment.startsWith("not run: ")) return [{ kind: "run", text }];
    return language === "text" ? [{ kind: "printed", text }] : [];
  });
}
