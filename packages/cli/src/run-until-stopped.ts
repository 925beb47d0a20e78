import type { Service, ShutdownTimes } from "@slotkeeper/server";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { exitOf } from "./signals.ts";

type StopSignal = "SIGTERM" | "SIGINT";

/** A balancer must see `/readyz` become 503 before the port closes. After Ctrl+C there is no need to wait. */
function timesOf(signal: StopSignal, { config }: Service): ShutdownTimes {
  const { shutdown } = config.settings;
  return signal === "SIGTERM" ? shutdown : { ...shutdown, graceMs: 0 };
}

/** Logs a crash first, so that the log filter removes secrets before anything else can print the error. */
function crasher({ log }: Service): (error: unknown) => void {
  return (error) => {
    log.error("crashed", { error });
    process.exit(EXIT.failed);
  };
}

/** Handles SIGHUP like an action of an operator. An invalid configuration is logged, and the old one stays. */
async function refreshBySignal(service: Service): Promise<void> {
  const outcome = await service.refresh().then(
    () => "done",
    () => "refused",
  );
  service.log.audit("refresh", { signal: "SIGHUP", outcome });
}

/**
 * Runs until a signal. A second signal ends the process at once. A crash is logged without secrets and ends the
 * process.
 */
export function runUntilStopped(service: Service): Promise<ExitCode> {
  return new Promise((resolve) => {
    let isStopping = false;
    const crash = crasher(service);
    const stop = (signal: StopSignal) => {
      if (isStopping) process.exit(exitOf(signal));
      isStopping = true;
      service.stop(timesOf(signal, service)).then(() => resolve(EXIT.ok), crash);
    };
    process.on("uncaughtException", crash);
    process.on("unhandledRejection", crash);
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop(signal));
    process.on("SIGHUP", () => void refreshBySignal(service));
  });
}
