import { existsSync, mkdirSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";

const LOCK = join(tmpdir(), "slotkeeper-chromium.lock");
/** Unpacking takes some seconds; a lock that is older was left by a process that died. */
const STALE_MS = 60_000;

/**
 * A real Chromium with its protection between origins, which the package's own arguments would switch off; they would also
 * put all pages into one process, which then ends with the first page. `CHROMIUM_PATH` overrides the package's.
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

/** The package unpacks on first use, and takes a half-written file for a whole one: test files take turns. */
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
