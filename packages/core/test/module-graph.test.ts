import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { expected, smoke } from "./smoke.ts";

/** Everything that an entry imports, directly or not, as written in the source. */
async function imports(contents: string): Promise<string[]> {
  const { metafile } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "neutral",
    external: ["node:*"],
    conditions: ["@slotkeeper/source"],
  });
  return Object.values(metafile.inputs).flatMap((input) => input.imports.map((one) => one.original ?? one.path));
}

describe("the main entry", () => {
  test("has no node: import and no bare import in its whole module graph", async () => {
    const found = await imports(`export * from "slotkeeper";`);
    expect(found.length).toBeGreaterThan(10);
    expect(found.filter((path) => !path.startsWith("./") && !path.startsWith("../"))).toEqual(["slotkeeper"]);
  });

  test("the check sees a node: import where there is one", async () => {
    const found = await imports(`import "node:fs"; export * from "slotkeeper";`);
    expect(found).toContain("node:fs");
  });

  test("does in Node what the smoke tests ask of other hosts", async () => {
    expect(await smoke()).toEqual(expected);
  });
});
