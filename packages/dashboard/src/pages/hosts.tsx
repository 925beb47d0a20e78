import { useEffect, useRef, useState } from "preact/hooks";
import { count, plural } from "../format.ts";
import { hosts } from "../model/fleet.ts";
import { arranged, type Sorting, type SortKey } from "../model/host-order.ts";
import { HOST_COLUMNS, type HostColumn, hostRowHeight } from "../ui/host-columns.tsx";
import { VirtualRows } from "../ui/virtual-rows.tsx";

export function HostsPage() {
  const [text, setText] = useState("");
  const [sorting, setSorting] = useState<Sorting>({ key: "load", isReversed: false });
  const rows = arranged(hosts.value.values(), text, sorting);
  const sortBy = (key: SortKey) =>
    setSorting(({ key: before, isReversed }) => ({ key, isReversed: before === key && !isReversed }));
  return (
    <section class="host-rows">
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
          rowHeight={hostRowHeight()}
          columns={HOST_COLUMNS}
          headings={HOST_COLUMNS.map((column) => (
            <Heading key={column.key} column={column} sorting={sorting} onSort={sortBy} />
          ))}
          row={(index) => rows[index]}
        />
      )}
    </section>
  );
}

/** `/` moves the focus to the search field, as on many other sites. */
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
  readonly column: HostColumn;
  readonly sorting: Sorting;
  readonly onSort: (key: SortKey) => void;
}

function Heading({ column, sorting: { key, isReversed }, onSort }: HeadingProps) {
  const isSorted = key === column.key;
  // Names start at A; all other columns start with the largest value.
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
