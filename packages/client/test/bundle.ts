/** Bundles code that uses the client, from its sources, for hosts that are not this test process. */
import { type BuildOptions, build } from "esbuild";

export async function bundle(contents: string, options: BuildOptions = {}): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname, loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["@slotkeeper/source"],
    ...options,
  });
  return outputFiles?.[0]?.text ?? "";
}
