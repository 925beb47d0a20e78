import { type BuildOptions, build } from "esbuild";

/** Bundles TypeScript to one ES module, or to what `options` say. Its relative imports start at `folder`. */
export async function bundle(contents: string, folder: string, options: BuildOptions = {}): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["@slotkeeper/source"],
    ...options,
  });
  return outputFiles?.[0]?.text ?? "";
}
