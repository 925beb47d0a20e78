import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { withModulePage } from "@slotkeeper/testkit/browser";
import { expect, test } from "vitest";
import { startRedirects } from "./broken-server.ts";
import { startWorld } from "./fixture.ts";
import { expected, redirected, smoke } from "./smoke.ts";

test("the client works in Node", async () => {
  const world = await startWorld();
  expect(await smoke(world.direct, "node")).toEqual(expected);
});

test("redirects are not followed in Node and in a real browser", async () => {
  const redirects = await startRedirects();
  expect(await redirected(redirects.url)).toBe("UNAVAILABLE");
  await withModulePage({ path: "./smoke.ts", folder: import.meta.dirname, url: redirects.page }, async (page) => {
    expect(await page.evaluate(`library.redirected(${JSON.stringify(redirects.url)})`)).toBe("UNAVAILABLE");
    expect([redirects.seen.redirected > 0, redirects.seen.followed]).toEqual([true, 0]);
  });
});

test("the client works in a real browser, from an origin that the service allows", async () => {
  const pages = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html>"));
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const world = await startWorld({ cors: { origins: [origin] } });
  try {
    await withModulePage({ path: "./smoke.ts", folder: import.meta.dirname, url: origin }, async (page) => {
      const seen = await page.evaluate(`library.smoke(${JSON.stringify(world.direct)}, "browser")`);
      expect(seen).toEqual(expected);
      await world.until({ slots: 0, sessions: 0 });
    });
  } finally {
    pages.close();
  }
});
