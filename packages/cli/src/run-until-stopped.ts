import { constants } from "node:os";
import type { Service, StopTimes } from "@slotkeeper/server";
import { EXIT, type ExitCode } from "./exit-codes.ts";

/** A balancer must see `/readyz` turn before the port closes; a person at the keyboard need not wait for one. */
const STOP_TIMES = {
  SIGTERM: { graceMs: 1_000, deadlineMs: 10_000 },
  SIGINT: { graceMs: 0, deadlineMs: 10_000 },
} as const satisfies Record<string, StopTimes>;

type StopSignal = keyof typeof STOP_TIMES;

/** Logged, and so scrubbed, before anything else can print it. */
function crasher({ log }: Service): (error: unknown) => void {
  return (error) => {
    log.error("crashed", { error });
    process.exit(EXIT.failed);
  };
}

/** An operator's action like any other. A bad configuration has been logged by then, and the old one stays. */
async function refreshBySignal(service: Service): Promise<void> {
  const outcome = await service.refresh().then(
    () => "done",
    () => "refused",
  );
  service.log.audit("refresh", { signal: "SIGHUP", outcome });
}

/** Runs until a signal says stop; a second one does not wait. A crash is logged, scrubbed, and ends the process. */
export function runUntilStopped(service: Service): Promise<ExitCode> {
  return new Promise((resolve) => {
    let isStopping = false;
    const crash = crasher(service);
    const stop = (signal: StopSignal) => {
      if (isStopping) process.exit(128 + constants.signals[signal]);
      isStopping = true;
      service.stop(STOP_TIMES[signal]).then(() => resolve(EXIT.ok), crash);
    };
    process.on("uncaughtException", crash);
    process.on("unhandledRejection", crash);
    for (const signal of Object.keys(STOP_TIMES) as StopSignal[]) process.on(signal, () => stop(signal));
    process.on("SIGHUP", () => void refreshBySignal(service));
  });
}
