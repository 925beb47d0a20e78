import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { launchChromium } from "@slotkeeper/testkit/browser";
import { bundle } from "@slotkeeper/testkit/bundle";
import { expect, test } from "vitest";
import { startWorld } from "./fixture.ts";
import { expected, smoke } from "./smoke.ts";

test("the client works in Node", async () => {
  const world = await startWorld();
  expect(await smoke(world.direct, "node")).toEqual(expected);
});

test("the client works in a real browser, from an origin that the service admits", async () => {
  const pages = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html>"));
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const world = await startWorld({ cors: { origins: [origin] } });
  const source = await bundle(`export { smoke } from "./smoke.ts";`, import.meta.dirname, {
    format: "iife",
    globalName: "library",
  });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(origin);
    await page.addScriptTag({ content: source });
    const seen = await page.evaluate(`library.smoke(${JSON.stringify(world.direct)}, "browser")`);
    expect(seen).toEqual(expected);
    await world.until({ slots: 0, sessions: 0 });
  } finally {
    await browser.close();
    pages.close();
  }
});
