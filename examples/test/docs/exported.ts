/** What the entries of a package export: each declaration with its comment, its members and its examples. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ROOT } from "./pages.ts";

export interface Exported {
  readonly name: string;
  /** `class`, `interface`, `type`, `const` or `function`; empty: not found. */
  readonly kind: string;
  /** From the root of the repository. */
  readonly file: string;
  readonly comment: string;
  /** The members, up to the brace that closes the declaration. */
  readonly body: string;
}

/** The sources of a package's entries, from the root of the repository. */
export function entriesOf(name: string): string[] {
  const manifest = JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as {
    exports: Record<string, string | { "@slotkeeper/source"?: string }>;
  };
  return Object.values(manifest.exports).flatMap((entry) => {
    const source = typeof entry === "string" ? undefined : entry["@slotkeeper/source"];
    return source === undefined ? [] : [join("packages", name, source)];
  });
}

/** What an entry declares, and what it re-exports: `export { a, type B } from "./file.ts"`, or all of a file. What is another package's is left out. */
export function exportsOf(entry: string): Exported[] {
  const path = join(ROOT, entry);
  const text = readFileSync(path, "utf8");
  const named = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from "(\..+)"/gm)].flatMap(
    ([, names = "", from = ""]) =>
      [...names.matchAll(/(\w+)\s*(?:,|$)/g)].map(([, name = ""]) => declarationOf(name, join(dirname(path), from))),
  );
  const files = [...text.matchAll(/^export (?:type )?\* from "(\..+)"/gm)].map(([, from = ""]) =>
    join(dirname(path), from),
  );
  const whole = [path, ...files].flatMap((file) => {
    const names = readFileSync(file, "utf8").matchAll(/^export (?:interface|type|const|function|class) (\w+)/gm);
    return [...names].map(([, name = ""]) => declarationOf(name, file));
  });
  return [...named, ...whole];
}

/** A declaration, the comment right before it, and its members up to the brace that closes it. */
function declarationOf(name: string, file: string): Exported {
  const source = readFileSync(file, "utf8");
  const declaration = new RegExp(
    `^(/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?export (?:abstract |async )*(class|interface|type|const|function\\*?) ${name}\\b((?:(?!\\n\\}|\\{\\}\\n)[^])*)`,
    "m",
  );
  const [, comment = "", kind = "", body = ""] = declaration.exec(source) ?? [];
  return { name, kind, file: relative(ROOT, file), comment, body };
}

export const examplesIn = (comment: string): string[] =>
  [...comment.matchAll(/@example\n\s*\* ```ts\n([^]*?)\n\s*\* ```/g)].map(([, lines = ""]) =>
    lines.replaceAll(/^\s*\* ?/gm, ""),
  );

/** Members of a class or interface with no comment right before them; one that overrides has that of its base. */
export const silentMembers = (body: string): string[] =>
  [
    ...body.matchAll(/(?<!\*\/)\n {2}(?:static |readonly |async |get )*(?!constructor|override)([a-z]\w*)\??[(<:]/g),
  ].map(([, member = ""]) => member);
