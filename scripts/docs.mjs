// Builds the documentation as a searchable static site: `npm run docs`, then open `docs/dist/index.html`.
//   npm run docs -- --out FOLDER
// Pages come from the Markdown files, the API reference from the emitted declaration files. No network is needed.
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { apiPages, withoutExample } from "./docs/api.mjs";
import { navigation, pageOf, repositoryPages } from "./docs/pages.mjs";
import { renderContent, renderPage } from "./docs/render.mjs";
import { searchIndex } from "./docs/search.mjs";

const startedAt = performance.now();
const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { out: { type: "string", default: join(root, "docs/dist") } } });
const out = values.out;
rmSync(out, { recursive: true, force: true });

const write = (path, text) => {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), text);
};

const repository = repositoryPages(root);
const api = apiPages(root).map((page) => ({
  ...pageOf(`docs/${page.path}`, page.markdown),
  name: page.name,
  declared: page.declared,
}));
const pages = [...repository, ...api];
const outputs = new Map(pages.map(({ source, output }) => [source, output]));
const sections = navigation(
  repository.find(({ source }) => source === "docs/README.md"),
  api,
);

/** A page, or a file of the repository, which is copied: pictures as they are, sources as text. */
function resolve(source) {
  const known = outputs.get(source);
  if (known !== undefined) return known;
  const path = join(root, source);
  if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const isPicture = /\.(?:png|svg)$/.test(source);
  const output = isPicture ? source.replace(/^docs\//, "") : `files/${source}.txt`;
  mkdirSync(dirname(join(out, output)), { recursive: true });
  cpSync(path, join(out, output));
  outputs.set(source, output);
  return output;
}

const rendered = pages.map((page) => ({ page, ...renderContent(page, resolve) }));
for (const { page, html, headings } of rendered) write(page.output, renderPage({ page, html, headings, sections }));
write("assets/site.css", readFileSync(join(root, "scripts/docs/site.css")));
write("assets/search-index.js", `globalThis.slotkeeperSearchIndex = ${JSON.stringify(searchIndex(rendered))};\n`);
await build({
  entryPoints: [join(root, "scripts/docs/search-box.mjs")],
  outfile: join(out, "assets/search.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
});

const missing = withoutExample(api);
const exported = api.reduce((sum, { declared }) => sum + declared.length, 0);
console.log(
  `${pages.length} pages, ${exported} exports in the API reference, in ${Math.round(performance.now() - startedAt)} ms: ${join(out, "index.html")}`,
);
if (missing.length > 0)
  console.log(
    `${missing.length} exported classes, functions or constants have no @example:\n  ${missing.join("\n  ")}`,
  );
