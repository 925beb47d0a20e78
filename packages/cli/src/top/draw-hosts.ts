import type { HostState } from "../operate/call-operator.ts";
import { fitted } from "../table.ts";
import { countOf, harmless, spanOf } from "./terminal-text.ts";
import { nameOf, type SortKey, shownHosts, type TopModel, waitingAt } from "./top-model.ts";

/** A line and its emphasis. Colours are added at the end, so that widths count only the text. */
export interface Line {
  readonly text: string;
  readonly look?: "title" | "heading" | "chosen" | "warning" | "quiet";
}

interface Column {
  readonly key: SortKey;
  /** Columns of a lower rank stay on a narrow terminal. */
  readonly rank: number;
  readonly title: string;
  readonly width: number;
  /** Default: "end". */
  readonly side?: "start" | "end";
  readonly value: (row: HostState) => string;
}

const COLUMNS: readonly Column[] = [
  {
    key: "use",
    rank: 1,
    title: "IN USE",
    width: 13,
    value: ({ inFlight, limit, isPaused }) =>
      `${isPaused ? "paused " : ""}${countOf(inFlight)} of ${limit ? countOf(limit) : "?"}`,
  },
  { key: "waiting", rank: 2, title: "WAITING", width: 9, value: (row) => countOf(waitingAt(row)) },
  { key: "longest", rank: 4, title: "LONGEST", width: 12, value: ({ oldestWaitMs }) => spanOrDash(oldestWaitMs) },
  { key: "average", rank: 5, title: "AVERAGE", width: 12, value: ({ avgWaitMs }) => spanOrDash(avgWaitMs) },
  { key: "breaker", rank: 3, title: "BREAKER", width: 16, side: "start", value: breakerOf },
];
const LEAST_NAME = 16;
const GAP = "  ";

function spanOrDash(ms: number): string {
  return ms > 0 ? spanOf(ms) : "-";
}

export function breakerOf({ breaker, breakerEndsInMs }: HostState): string {
  if (breaker !== "open") return breaker === "half-open" ? "testing" : "closed";
  return breakerEndsInMs === undefined ? "open" : `open ${spanOf(breakerEndsInMs)}`;
}

/** The columns of the lowest ranks, as many as fit next to a readable name. */
function columnsFor(width: number): readonly Column[] {
  let left = width - LEAST_NAME;
  let lastRank = 0;
  for (const { rank, width: needed } of COLUMNS.toSorted((a, b) => a.rank - b.rank)) {
    left -= needed + GAP.length;
    if (left < 0) break;
    lastRank = rank;
  }
  return COLUMNS.filter(({ rank }) => rank <= lastRank);
}

/** Without room for the column, an open breaker replaces the use: nothing reaches such a host. */
function cellOf(column: Column, row: HostState, shown: readonly Column[]): string {
  const isHidden = row.breaker === "open" && !shown.some(({ key }) => key === "breaker");
  return column.key === "use" && isHidden ? "breaker open" : column.value(row);
}

function heading(columns: readonly Column[], nameWidth: number, { sort, isReversed }: TopModel): Line {
  const mark = (key: SortKey, title: string) => (key === sort ? `${title}${isReversed ? "↑" : "↓"}` : title);
  const cells = columns.map(({ key, title, width, side = "end" }) => fitted(mark(key, title), width, side));
  return { text: [fitted(mark("host", "HOST"), nameWidth), ...cells].join(GAP), look: "heading" };
}

/** The table, cut to the height. The host under the cursor is always visible. */
export function hostLines(model: TopModel, width: number, height: number): Line[] {
  const columns = columnsFor(width);
  const nameWidth = width - columns.reduce((sum, column) => sum + column.width + GAP.length, 0);
  const rows = shownHosts(model);
  const at = Math.max(
    0,
    rows.findIndex(({ host }) => host === model.cursor),
  );
  const room = Math.max(1, height - 1);
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), rows.length - room));
  const body = rows.slice(first, first + room).map((row, index): Line => {
    const cells = columns.map((column) => fitted(cellOf(column, row, columns), column.width, column.side ?? "end"));
    const text = [fitted(harmless(nameOf(row)), nameWidth), ...cells].join(GAP);
    if (first + index === at) return { text, look: "chosen" };
    return row.breaker === "closed" && !row.isPaused ? { text } : { text, look: "warning" };
  });
  if (rows.length > 0) return [heading(columns, nameWidth, model), ...body];
  const empty = model.search === "" ? "No host is known yet." : `No host matches “${harmless(model.search)}”.`;
  return [heading(columns, nameWidth, model), { text: fitted(empty, width), look: "quiet" }];
}
