import type { Page } from "playwright-core";
import { bundle } from "../bundle/bundle.ts";
import { launchChromium } from "./launch-chromium.ts";

interface PageModule {
  /** The path, relative to `folder`. */
  readonly path: string;
  readonly folder: string;
  /** The address of the page; a blank page has no origin. */
  readonly url?: string;
}

/** Calls `use` with a page of a real browser in which the exports of a TypeScript module are the global `library`. */
export async function withModulePage<T>(
  { path, folder, url }: PageModule,
  use: (page: Page) => Promise<T>,
): Promise<T> {
  const content = await bundle(`export * from ${JSON.stringify(path)};`, folder, {
    format: "iife",
    globalName: "library",
  });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    if (url !== undefined) await page.goto(url);
    await page.addScriptTag({ content });
    return await use(page);
  } finally {
    await browser.close();
  }
}
