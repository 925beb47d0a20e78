import { build } from "esbuild";
import { describe, expect, test } from "vitest";
import { smokeInBrowser, smokeInWorkerd } from "../hosts.ts";
import { expected, smoke } from "./smoke.ts";

/** The files of the library that an entry is made of. */
async function filesOf(entry: string): Promise<string[]> {
  const contents = `export * from "${entry}";`;
  const { metafile } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    metafile: true,
    bundle: true,
    write: false,
    platform: "neutral",
    conditions: ["@slotkeeper/source"],
  });
  return Object.keys(metafile.inputs);
}

describe("the limiter's entry", () => {
  test("bundles for no platform in particular, and is no part of the main entry", async () => {
    const isLimiter = (file: string) => file.includes("src/limiter/");
    expect((await filesOf("slotkeeper/limiter")).filter(isLimiter).length).toBeGreaterThan(10);
    expect((await filesOf("slotkeeper")).filter(isLimiter)).toEqual([]);
  });

  test("works in Node", async () => {
    expect(await smoke()).toEqual(expected);
  });

  test("works in real workerd", async () => {
    expect(await smokeInWorkerd("./limiter/smoke.ts")).toEqual(expected);
  });

  test("works in a real browser", async () => {
    expect(await smokeInBrowser("./limiter/smoke.ts")).toEqual(expected);
  });
});
