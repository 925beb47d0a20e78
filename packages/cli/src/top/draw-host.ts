import type { HostState } from "../operate/call-operator.ts";
import { alignedRows, fitted } from "../table.ts";
import type { Line } from "./draw-hosts.ts";
import { hostSummary, sessionCells, slotCells, tablesOf } from "./host-cells.ts";
import type { Snapshot } from "./read-service.ts";
import { countOf, harmless } from "./terminal-text.ts";
import { nameOf } from "./top-model.ts";

/** One host: its slots with holder, age and lease, and its queue with the reason why each session waits. */
export function openHostLines({ open, state }: Snapshot, key: string, width: number, height: number): Line[] {
  const host = open?.host;
  if (open?.key !== key) return [{ text: "Loading…", look: "quiet" }];
  if (host === undefined) {
    return [{ text: fitted("The service no longer knows this host. Press Esc to go back.", width), look: "quiet" }];
  }
  const head = headLines(host, width);
  const slots = slotLines(host, width);
  const queue = queueLines(host, state.at, width);
  const room = height - head.length - 2;
  // The slots get at most half of the remaining lines, so that the queue is always visible.
  const forSlots = Math.min(slots.length, Math.max(2, Math.floor(room / 2)));
  return [
    ...head,
    ...clipped(slots, forSlots, width),
    { text: "" },
    ...clipped(queue, Math.max(2, room - forSlots + 1), width),
  ].slice(0, height);
}

function headLines(host: HostState, width: number): Line[] {
  return [
    { text: fitted(harmless(nameOf(host)), width), look: "title" },
    { text: fitted(hostSummary(host), width) },
    { text: "" },
    ...tablesOf(host).flatMap((rows) => tableLines(rows, width)),
  ];
}

function tableLines(cells: readonly (readonly string[])[], width: number): Line[] {
  const [heading = "", ...rows] = alignedRows(cells).split("\n");
  return [
    { text: fitted(heading, width), look: "heading" },
    // The last one is empty: a space before the next table.
    ...rows.map((text) => ({ text: fitted(text, width) })),
  ];
}

function slotLines({ slots }: HostState, width: number): Line[] {
  const name = Math.max(10, width - 34);
  const row = (bucket: string, held: string, lease: string) =>
    `${fitted(bucket, name)}  ${fitted(held, 14, "end")}  ${fitted(lease, 14, "end")}`;
  return [
    { text: row("SLOT HELD BY", "HELD FOR", "LEASE LEFT"), look: "heading" },
    ...slots.map((slot) => ({ text: row(...slotCells(slot)) })),
  ];
}

function queueLines({ sessions, pending }: HostState, at: number, width: number): Line[] {
  const name = Math.max(10, width - 62);
  const row = (position: string, bucket: string, waits: string, forecast: string, why: string) =>
    `${fitted(position, 8, "end")}  ${fitted(bucket, name)}  ${fitted(waits, 12, "end")}  ${fitted(forecast, 12, "end")}  ${fitted(why, 22)}`;
  const lines = sessions.map((session) => ({ text: row(...sessionCells(session, at)) }));
  const none = { text: fitted("No session waits at this instance.", width), look: "quiet" } as const;
  return [
    { text: row("POSITION", "BUCKET", "WAITING FOR", "FORECAST", "WHY"), look: "heading" },
    ...(pending === 0 ? [none] : lines),
  ];
}

/** Cuts the lines to the height, and adds a line with the number of hidden ones. */
function clipped(lines: readonly Line[], height: number, width: number): Line[] {
  if (lines.length <= height) return [...lines];
  const more = { text: fitted(`… ${countOf(lines.length - height + 1)} more`, width), look: "quiet" } as const;
  return [...lines.slice(0, height - 1), more];
}
