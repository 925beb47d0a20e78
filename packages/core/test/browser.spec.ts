import { launchChromium } from "@slotkeeper/testkit/browser";
import { expect, test } from "vitest";
import { bundle } from "./bundle.ts";
import { expected } from "./smoke.ts";

test("the main entry works in a real browser", async () => {
  const source = await bundle(`export { smoke } from "./smoke.ts";`, { format: "iife", globalName: "library" });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: source });
    expect(await page.evaluate("library.smoke()")).toEqual(expected);
  } finally {
    await browser.close();
  }
});
