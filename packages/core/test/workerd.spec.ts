import { Miniflare } from "miniflare";
import { expect, test } from "vitest";
import { bundle } from "./bundle.ts";
import { expected } from "./smoke.ts";

test("the main entry works in real workerd", async () => {
  const script = await bundle(`
    import { smoke } from "./smoke.ts";
    export default { fetch: async () => Response.json(await smoke()) };
  `);
  const worker = new Miniflare({ modules: true, script, compatibilityDate: "2025-01-01" });
  try {
    const response = await worker.dispatchFetch("http://localhost/");
    expect(await response.json()).toEqual(expected);
  } finally {
    await worker.dispose();
  }
});
