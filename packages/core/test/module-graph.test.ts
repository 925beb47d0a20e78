import { importedFiles } from "@slotkeeper/testkit/bundle";
import { describe, expect, test } from "vitest";
import { expected, smoke } from "./smoke.ts";

/** Everything that an entry imports, directly or not, as written in the source. */
async function imports(contents: string): Promise<string[]> {
  const files = await importedFiles(contents, import.meta.dirname, { external: ["node:*"] });
  return Object.values(files).flatMap((file) => file.imports.map((one) => one.original ?? one.path));
}

describe("the main entry", () => {
  test("has no node: import and no bare import in its whole module graph", async () => {
    const found = await imports(`export * from "slotkeeper";`);
    expect(found.length).toBeGreaterThan(10);
    expect(found.filter((path) => !path.startsWith("./") && !path.startsWith("../"))).toEqual(["slotkeeper"]);
  });

  test("the check finds a node: import if there is one", async () => {
    const found = await imports(`import "node:fs"; export * from "slotkeeper";`);
    expect(found).toContain("node:fs");
  });

  test("passes the smoke tests of the other hosts in Node", async () => {
    expect(await smoke()).toEqual(expected);
  });
});
