/** `@slotkeeper/testkit/browser`: a real browser for tests and screenshots. */
export { launchChromium } from "./launch-chromium.ts";
export { withModulePage } from "./with-module-page.ts";
