import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { bundle } from "./bundle.ts";
import { expected } from "./smoke.ts";

test("the main entry works in a real browser", async () => {
  const source = await bundle(`export { smoke } from "./smoke.ts";`, { format: "iife", globalName: "library" });
  const { default: build } = await import("@sparticuz/chromium");
  const executablePath = process.env["CHROMIUM_PATH"] ?? (await build.executablePath());
  const browser = await chromium.launch({ executablePath, args: build.args, headless: true });
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: source });
    expect(await page.evaluate("library.smoke()")).toEqual(expected);
  } finally {
    await browser.close();
  }
});
