// The documentation site: `npm run docs` builds it into `docs/dist`, for any static HTTP server.
//   npm run docs -- --base /slotkeeper/     for a server that has it below this path
//   npx vitepress preview docs              serves the build
//   npx vitepress dev docs                  serves the pages without one; needs `npx tsc -b`, and a restart after a change
// Decision 0135 says why VitePress. Nothing is loaded from other servers.
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { addRowAnchors, breakNames, slugOf } from "../../scripts/docs/anchors.mjs";
import { apiPages } from "../../scripts/docs/api.mjs";
import { copyMarkdown, llmsText, writePages } from "../../scripts/docs/markdown.mjs";
import { pageOf, repositoryPages, sidebarOf, summaryOf } from "../../scripts/docs/pages.mjs";
import { SEARCH } from "../../scripts/docs/search.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const pages = [
  ...repositoryPages(root),
  ...apiPages(root).map(({ path, markdown }) => pageOf(`docs/${path}`, markdown)),
];
const srcDir = join(root, "docs/.vitepress/pages");
writePages(root, pages, srcDir);

export default defineConfig({
  title: "Slotkeeper",
  description: summaryOf(pages),
  srcDir,
  outDir: join(root, "docs/dist"),
  head: [["link", { rel: "icon", href: "data:," }]],
  transformHead: ({ page }) =>
    page === "404.md" ? [] : [["link", { rel: "alternate", type: "text/markdown", href: basename(page) }]],
  /** A class has dozens of members: the table of contents of an API page lists the exports only. */
  transformPageData: ({ relativePath, frontmatter }) => ({
    frontmatter: { ...frontmatter, outline: relativePath.startsWith("api/") ? 2 : [2, 3] },
  }),
  markdown: { anchor: { slugify: slugOf }, config: (md) => md.use(addRowAnchors).use(breakNames) },
  themeConfig: {
    nav: [
      { text: "Tutorial", link: "/tutorial" },
      { text: "Library", link: "/guides/library" },
      { text: "Service", link: "/guides/serve" },
      { text: "All pages", link: "/contents" },
    ],
    sidebar: sidebarOf(pages),
    search: { provider: "local", options: SEARCH },
  },
  vite: { build: { chunkSizeWarningLimit: 2_000 } }, // the search index, which is loaded at the first search
  buildEnd: ({ outDir }) => copyMarkdown(srcDir, outDir, llmsText(pages)),
});
