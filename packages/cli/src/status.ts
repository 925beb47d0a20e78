import type { ServiceState } from "@slotkeeper/server";
import { STATUS } from "./commands/operating.ts";
import { EXIT } from "./exit-codes.ts";
import { callOperator } from "./operate/call-operator.ts";
import { running } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { alignedRows } from "./table.ts";
import { harmless, spanOf } from "./top/terminal-text.ts";

export const statusCommand = running(STATUS, async (flags) => {
  const isJson = flags.json === true;
  if (flags.local === true) return (await import("./local/status-locally.ts")).statusLocally(flags.socket, isJson);
  const query = flags.host === undefined ? "" : `?host=${encodeURIComponent(flags.host)}`;
  try {
    const state = await callOperator(flags, `/state${query}`);
    process.stdout.write(isJson ? `${JSON.stringify(state)}\n` : tableOf(state as ServiceState, flags.host));
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, isJson);
  }
});

function tableOf({ hosts, total }: ServiceState, asked: string | undefined): string {
  if (hosts.length === 0) {
    return asked === undefined ? "No host has slots or waiters.\n" : `The host "${asked}" has no slots or waiters.\n`;
  }
  const rows = hosts.map(({ host, hostname, inFlight, limit, waiting, breaker, oldestWaitMs, isPaused }) => [
    harmless(hostname ?? host),
    `${inFlight}/${limit || "-"}${isPaused ? " paused" : ""}`,
    String(waiting),
    oldestWaitMs ? spanOf(oldestWaitMs) : "-",
    breaker,
  ]);
  const table = alignedRows([["HOST", "SLOTS", "WAITING", "OLDEST", "BREAKER"], ...rows]);
  return total > hosts.length ? `${table}… and ${total - hosts.length} more: --json, or --host NAME\n` : table;
}
