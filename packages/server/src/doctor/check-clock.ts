import type { ClockReading } from "@slotkeeper/postgres";
import { SKEW_WARN_MS } from "../telemetry/clock-skew.ts";
import { type Finding, ok, warning } from "./finding.ts";

/** Reports the difference only if it is larger than the error of the measurement. */
export function clockFinding({ offsetMs, errorMs }: ClockReading): Finding {
  const seconds = (Math.abs(offsetMs) / 1000).toFixed(1);
  const side = offsetMs < 0 ? "ahead of" : "behind";
  if (Math.abs(offsetMs) - errorMs <= SKEW_WARN_MS) {
    return ok("clock", `This machine and the database agree within ${Math.ceil(Math.abs(offsetMs) + errorMs)} ms.`);
  }
  return warning("clock", {
    code: "CLOCK_SKEW",
    found: `This machine's clock is ${seconds} s ${side} the database's (±${Math.ceil(errorMs)} ms).`,
    why: "Leases use the database's clock, so limits hold. But the times in this machine's logs are wrong, and a caller on it that sends `hitUpstreamAtMs` without `now` gets a wrong minimum hold.",
    fix: "Synchronise both clocks, for example with chrony or systemd-timesyncd.",
  });
}
