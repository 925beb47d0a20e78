import { existsSync, mkdirSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";

const LOCK = join(tmpdir(), "slotkeeper-chromium.lock");
/** Unpacking takes some seconds. An older lock was left by a process that died. */
const STALE_MS = 60_000;

/**
 * Launches a real Chromium with its protection between origins. The default arguments of the package would disable it,
 * and would put all pages into one process that ends with the first page. `CHROMIUM_PATH` overrides the path.
 */
export async function launchChromium(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  const { default: packaged } = await import("@sparticuz/chromium");
  const executablePath = process.env["CHROMIUM_PATH"] ?? (await unpacked(() => packaged.executablePath()));
  return chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none"],
    headless: true,
  });
}

/** The package unpacks at the first use and accepts a half-written file, so test files take turns. */
async function unpacked(unpack: () => Promise<string>): Promise<string> {
  while (!hasTakenLock()) await new Promise((resolve) => setTimeout(resolve, 100));
  try {
    return await unpack();
  } finally {
    rmdirSync(LOCK);
  }
}

function hasTakenLock(): boolean {
  try {
    mkdirSync(LOCK);
    return true;
  } catch {
    if (existsSync(LOCK) && Date.now() - statSync(LOCK).mtimeMs > STALE_MS) rmdirSync(LOCK);
    return false;
  }
}
