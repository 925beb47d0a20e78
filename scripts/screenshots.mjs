// Takes the screenshots of the README from a real service under live load, in a real browser.
//   npm run screenshots [-- --seconds 120]
// The charts show the last 15 minutes, so a longer load makes fuller pictures.
import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { Service } from "@slotkeeper/server";
import { launchChromium } from "@slotkeeper/testkit/browser";
import { DEMO_PLAN, Load } from "@slotkeeper/testkit/load";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "120" }, out: { type: "string", default: "docs/images" } },
});
const FRAMES = [
  { name: "desktop", viewport: { width: 1280, height: 860 } },
  { name: "phone", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
];

const service = await Service.start({
  flags: {
    listen: "127.0.0.1:0",
    fairQueue: {
      maxSlotPerIp: 2,
      maxWaitMs: 8_000,
      hosts: {
        "cdn.images.example": { maxSlotPerHost: 12 },
        "exports.reports.example": { maxSlotPerHost: 2, maxSlotPerIp: 1 },
      },
    },
  },
  environment: {},
  log: { write: () => {}, isJson: true, hasColours: false },
});
const load = new Load({ url: service.url }, DEMO_PLAN);
const browser = await launchChromium();
try {
  console.log(`Load for ${values.seconds} s…`);
  await new Promise((resolve) => setTimeout(resolve, Number(values.seconds) * 1000));
  mkdirSync(values.out, { recursive: true });
  for (const { name: frame, ...options } of FRAMES) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await browser.newPage({ ...options, colorScheme, locale: "en-GB" });
      const shoot = async (name) => {
        await page.mouse.move(0, 0);
        const path = `${values.out}/${name}-${frame}-${colorScheme}.png`;
        await page.screenshot({ path });
        console.log(path);
      };
      await page.goto(service.url);
      await page.getByRole("heading", { name: "Look here first" }).waitFor();
      await page.waitForTimeout(500);
      await shoot("overview");
      await page.goto(`${service.url}/#/hosts`);
      await page.getByRole("link", { name: "api.payments.example" }).waitFor();
      await shoot("hosts");
      await page.getByRole("link", { name: "api.payments.example" }).click();
      await page.getByRole("heading", { name: "How long they waited" }).waitFor();
      await shoot("host");
      await page.close();
    }
  }
} finally {
  await browser.close();
  await load.stop();
  await service.stop({ graceMs: 0, deadlineMs: 1_000 });
}
