// The dashboard as static files of a Worker, against its directory; in real workerd and Chromium.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launchChromium } from "@slotkeeper/testkit/browser";
import { expect, test } from "vitest";
import { call } from "./killed-workerd.ts";
import { SERVING, slotsClass, startWorker, TOKEN } from "./worker.ts";

const DASHBOARD = fileURLToPath(new URL("../../dashboard/", import.meta.url));

test("the dashboard shows the hosts of a Worker, and one of them", async () => {
  const assets = await mkdtemp(join(tmpdir(), "slotkeeper-assets-"));
  const { build } = await import("vite");
  await build({ configFile: join(DASHBOARD, "vite.config.ts"), build: { outDir: assets, emptyOutDir: true } });
  const browser = await launchChromium();
  try {
    const worker = await startWorker({ script: `${slotsClass({ maxSlotPerHost: 3 })} ${SERVING}`, assets });
    await call(worker, "acquire", { hostname: "busy.example", bucket: "a", waitMs: 1_000 });
    const page = await browser.newPage();
    await page.goto(`${worker.url.origin}/#/hosts`);
    await page.getByLabel(/internalApiToken/).fill(TOKEN);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "busy.example" }).click();
    await expect.poll(() => page.locator("main").innerText(), { timeout: 10_000 }).toMatch(/1\s*(?:\/|of)\s*3/);
    await page.goto(`${worker.url.origin}/#/`);
    await expect.poll(() => page.locator("main").innerText(), { timeout: 10_000 }).toContain("busy.example");
  } finally {
    await browser.close();
    await rm(assets, { recursive: true });
  }
});
