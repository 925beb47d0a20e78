import type { FairQueue } from "@slotkeeper/queue";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import type { Flushed } from "../http/service-context.ts";

/** Ends expired sessions, cleans the store and pushes the metrics. Each step runs even if another one fails. */
export async function flush(queue: FairQueue, control: ControlPlane): Promise<Flushed> {
  const swept: { [what: string]: number } = {};
  const failures: { step: string; error: unknown }[] = [];
  const step = async (name: string, work: () => Promise<void> | void) => {
    try {
      await work();
    } catch (error) {
      failures.push({ step: name, error });
    }
  };
  await step("session sweep", () => {
    swept["endedHere"] = queue.sweepSessions();
  });
  await step("store cleanup", async () => {
    const { failures: failed, hosts } = await queue.sweep();
    swept["hosts"] = hosts;
    failures.push(...failed.map((error) => ({ step: "store cleanup", error })));
  });
  await step("metrics push", () => control.push());
  return { swept, failures };
}
