import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { DatabaseExam } from "./database-exam.ts";

/** Whether notifications arrive. */
export type NotificationProbe =
  | { readonly outcome: "delivered"; readonly afterMs: number }
  /** A notification was sent and did not arrive. */
  | { readonly outcome: "lost" }
  /** The two addresses lead to different databases. */
  | { readonly outcome: "elsewhere" };

/** Sends a notification over one connection and waits for it on another, as an instance and its listener do. */
export async function probeNotifications(
  sender: DatabaseExam,
  receiver: DatabaseExam,
  waitMs: number,
): Promise<NotificationProbe> {
  if ((await sender.identity()) !== (await receiver.identity())) return { outcome: "elsewhere" };
  const channel = `slotkeeper_doctor_${randomBytes(8).toString("hex")}`;
  const startedAt = performance.now();
  const arrived = new AbortController();
  await receiver.listen(channel, () => arrived.abort());
  await sender.notify(channel);
  // The pause ends early when the notification arrives.
  const isDelivered = await pause(waitMs, false, { signal: arrived.signal }).catch(() => true);
  return isDelivered ? { outcome: "delivered", afterMs: performance.now() - startedAt } : { outcome: "lost" };
}
