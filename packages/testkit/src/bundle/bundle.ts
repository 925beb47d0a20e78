import { type BuildOptions, build, type Metafile } from "esbuild";

/** A TypeScript file, or text whose relative imports start at `folder`. */
export type BundleSource = { readonly file: string } | { readonly text: string; readonly folder: string };

/** Needs no build of the workspace: the condition resolves imports of its packages to their sources. */
const DEFAULTS = {
  bundle: true,
  format: "esm",
  target: "es2022",
  conditions: ["@slotkeeper/source"],
} satisfies BuildOptions;

function entryOf(source: BundleSource): BuildOptions {
  if ("file" in source) return { entryPoints: [source.file] };
  return { stdin: { contents: source.text, resolveDir: source.folder, loader: "ts" } };
}

/** Bundles TypeScript to one ES module, or as `options` say. Its relative imports start at `folder`. */
export async function bundle(text: string, folder: string, options: BuildOptions = {}): Promise<string> {
  const { outputFiles } = await build({ ...DEFAULTS, ...entryOf({ text, folder }), write: false, ...options });
  return outputFiles?.[0]?.text ?? "";
}

/** Writes the bundle to `outfile`, as a program for Node unless `options` say otherwise. */
export async function bundleTo(outfile: string, source: BundleSource, options: BuildOptions = {}): Promise<void> {
  await build({ ...DEFAULTS, ...entryOf(source), platform: "node", logLevel: "error", outfile, ...options });
}

/**
 * Every file that the text imports, directly or indirectly, with its own imports. The text must not depend on a
 * platform.
 */
export async function importedFiles(
  text: string,
  folder: string,
  options: BuildOptions = {},
): Promise<Metafile["inputs"]> {
  const entry = entryOf({ text, folder });
  const { metafile } = await build({
    ...DEFAULTS,
    ...entry,
    platform: "neutral",
    ...options,
    write: false,
    metafile: true,
  });
  return metafile.inputs;
}
