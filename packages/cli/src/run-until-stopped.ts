import { constants } from "node:os";
import type { Service, ShutdownTimes } from "@slotkeeper/server";
import { EXIT, type ExitCode } from "./exit-codes.ts";

type StopSignal = "SIGTERM" | "SIGINT";

/** A balancer must see `/readyz` turn before the port closes; a person at the keyboard need not wait for one. */
function timesOf(signal: StopSignal, { config }: Service): ShutdownTimes {
  const { shutdown } = config.settings;
  return signal === "SIGTERM" ? shutdown : { ...shutdown, graceMs: 0 };
}

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

/** Runs until a signal; a second signal ends the process at once. A crash is logged without secrets, and ends the process. */
export function runUntilStopped(service: Service): Promise<ExitCode> {
  return new Promise((resolve) => {
    let isStopping = false;
    const crash = crasher(service);
    const stop = (signal: StopSignal) => {
      if (isStopping) process.exit(128 + constants.signals[signal]);
      isStopping = true;
      service.stop(timesOf(signal, service)).then(() => resolve(EXIT.ok), crash);
    };
    process.on("uncaughtException", crash);
    process.on("unhandledRejection", crash);
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop(signal));
    process.on("SIGHUP", () => void refreshBySignal(service));
  });
}
