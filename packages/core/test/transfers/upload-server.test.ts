import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withProgram } from "@slotkeeper/testkit/bundle";
import { expect, test } from "vitest";
import { outputOf } from "./output-of.ts";

const file = fileURLToPath(new URL("../../../../examples/src/upload-server.ts", import.meta.url));

interface Summary {
  readonly budgetMb: number;
  readonly limited: { readonly mostMb: number; readonly mostAtOnce: number; readonly uploads: number };
  readonly unlimited: { readonly mostMb: number; readonly mostAtOnce: number; readonly uploads: number };
  readonly limits: { readonly least: number; readonly most: number };
}

test("the example's server stays under its budget while clients flood it, and draws its chart", async () => {
  const { summary, chart } = await withProgram({ file }, async (program, folder) => {
    const path = join(folder, "chart.svg");
    const out = await outputOf(program, ["--short", "--chart", path]);
    return { summary: JSON.parse(out) as Summary, chart: await readFile(path, "utf8") };
  });
  const { budgetMb, limited, unlimited, limits } = summary;
  // Twelve uploads, the other part and uncollected buffers fit below the budget, however late the governor measures.
  expect(limited.mostMb).toBeLessThan(budgetMb);
  // How far the other gets beyond it depends on the machine; that it takes in more than the limit does not.
  expect(limited.mostAtOnce).toBeLessThanOrEqual(12);
  expect(unlimited.mostAtOnce).toBeGreaterThan(12);
  expect(limited.uploads).toBeGreaterThan(0);
  expect(limits.most).toBe(12);
  expect(limits.least).toBeGreaterThanOrEqual(2);
  expect(chart).toMatch(/^<svg [^]*<\/svg>\n$/);
  expect(chart.match(/<polyline /g)).toHaveLength(4);
  expect(chart).not.toContain("NaN");
});
