import { readFile } from "node:fs/promises";
import { bootId } from "./process-identity.ts";
import type { Uptime } from "./resumed-clock.ts";

/** Undefined where the system does not say. */
export async function readUptime(): Promise<Uptime | undefined> {
  const boot = await bootId();
  const ms = Number.parseFloat(await readFile("/proc/uptime", "latin1").catch(() => "")) * 1000;
  return boot === "" || Number.isNaN(ms) ? undefined : { boot, ms };
}
