import { useEffect, useRef, useState } from "preact/hooks";
import { count, duration, plural } from "../format.ts";
import { type HostRow, hosts } from "../model/fleet.ts";
import { arranged, type SortKey, type Sorting } from "../model/host-order.ts";
import { waitingAt } from "../model/load.ts";
import { BreakerBadge, LoadBadge } from "../ui/badges.tsx";
import { HostLink } from "../ui/name.tsx";
import { UseBar } from "../ui/use-bar.tsx";
import { VirtualRows } from "../ui/virtual-rows.tsx";

const ROW_HEIGHT = 44;

const COLUMNS: readonly { readonly key: SortKey; readonly title: string; readonly class: string }[] = [
  { key: "name", title: "Host", class: "cell-name" },
  { key: "load", title: "Load", class: "cell-load" },
  { key: "use", title: "Slots in use", class: "cell-use" },
  { key: "waiting", title: "Waiting", class: "cell-number" },
  { key: "oldest", title: "Longest wait", class: "cell-number cell-extra" },
  { key: "average", title: "Average wait", class: "cell-number cell-extra" },
  { key: "breaker", title: "Breaker", class: "cell-breaker" },
];

export function HostsPage() {
  const [text, setText] = useState("");
  const [sorting, setSorting] = useState<Sorting>({ key: "load", isReversed: false });
  const rows = arranged(hosts.value.values(), text, sorting);
  const sortBy = (key: SortKey) =>
    setSorting(({ key: before, isReversed }) => ({ key, isReversed: before === key && !isReversed }));
  return (
    <section class="hosts-page">
      <div class="page-head">
        <h1>Hosts</h1>
        <SearchBox text={text} onText={setText} />
        <p class="quiet found" role="status">
          {text === "" ? plural(rows.length, "host") : `${count(rows.length)} of ${plural(hosts.value.size, "host")}`}
        </p>
      </div>
      {rows.length === 0 ? (
        <p class="card empty">
          {text === "" ? "No host is known yet. A host appears with the first request for it." : "No host matches."}
        </p>
      ) : (
        <VirtualRows
          label="Hosts"
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          header={COLUMNS.map((column) => (
            <Heading key={column.key} column={column} sorting={sorting} onSort={sortBy} />
          ))}
          row={(index) => <Cells row={rows[index] as HostRow} />}
        />
      )}
    </section>
  );
}

/** `/` goes to the search, as on many other sites. */
function SearchBox({ text, onText }: { text: string; onText: (text: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <input
      ref={input}
      type="search"
      class="search"
      value={text}
      placeholder="Search hosts ( / )"
      aria-label="Search hosts"
      onInput={({ currentTarget }) => onText(currentTarget.value)}
    />
  );
}

interface HeadingProps {
  readonly column: (typeof COLUMNS)[number];
  readonly sorting: Sorting;
  readonly onSort: (key: SortKey) => void;
}

function Heading({ column, sorting: { key, isReversed }, onSort }: HeadingProps) {
  const isSorted = key === column.key;
  // Names begin at A; everything else begins with the most.
  const isDescending = (column.key === "name") === isReversed;
  return (
    <div
      role="columnheader"
      class={column.class}
      aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : "none"}
    >
      <button type="button" class="sort" onClick={() => onSort(column.key)}>
        {column.title}
        <i aria-hidden="true">{isSorted ? (isDescending ? "▾" : "▴") : ""}</i>
      </button>
    </div>
  );
}

function Cells({ row }: { row: HostRow }) {
  const waiting = waitingAt(row);
  return (
    <>
      <div role="cell" class="cell-name">
        <HostLink host={row.host} hostname={row.hostname} />
      </div>
      <div role="cell" class="cell-load">
        <LoadBadge row={row} />
      </div>
      <div role="cell" class="cell-use">
        <UseBar inFlight={row.inFlight} limit={row.limit} />
      </div>
      <div role="cell" class="cell-number">
        {waiting === 0 ? <span class="quiet">0</span> : count(waiting)}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {row.oldestWaitMs > 0 ? duration(row.oldestWaitMs) : <span class="quiet">–</span>}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {row.avgWaitMs > 0 ? duration(row.avgWaitMs) : <span class="quiet">–</span>}
      </div>
      <div role="cell" class="cell-breaker">
        <BreakerBadge row={row} seenAt={row.seenAt} />
      </div>
    </>
  );
}
