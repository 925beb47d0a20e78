/** Links between pages: no file and no heading is missing, and every page can be found from the index. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allPages, internalLinks, ROOT } from "./pages.ts";

const pages = new Map(allPages().map((page) => [page.path, page]));
const links = [...pages.values()].flatMap(internalLinks);

test("every internal link points to a file of the repository, not to a folder, which the site does not have", () => {
  expect(links.length).toBeGreaterThan(100);
  const broken = links.filter(({ file }) => statSync(join(ROOT, file), { throwIfNoEntry: false })?.isFile() !== true);
  expect(broken.map(({ page, target }) => `${page}: ${target}`)).toEqual([]);
});

test("every anchor is a heading of its page", () => {
  const broken = links.filter(({ file, anchor }) => anchor !== "" && pages.get(file)?.anchors.has(anchor) !== true);
  expect(broken.map(({ page, target }) => `${page}: ${target}`)).toEqual([]);
});

test("every page of docs can be reached from its index", () => {
  const reached = new Set(["docs/README.md"]);
  for (const path of reached) {
    for (const { page, file } of links) if (page === path && pages.has(file)) reached.add(file);
  }
  const hidden = [...pages.keys()].filter((path) => path.startsWith("docs/") && !reached.has(path));
  expect(hidden).toEqual([]);
});
