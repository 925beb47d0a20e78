import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { count as formatted } from "../format.ts";

/** A column of a table: its title, the class that gives it its width, and what it shows of a row. */
export interface Column<Row> {
  readonly title: string;
  readonly class: string;
  readonly cell: (row: Row) => ComponentChildren;
}

interface VirtualRowsProps<Row> {
  readonly label: string;
  readonly count: number;
  readonly rowHeight: number;
  readonly columns: readonly Column<Row>[];
  /** Default: the titles of the columns. */
  readonly headings?: ComponentChildren;
  /** `undefined` while the row is being loaded. */
  readonly row: (index: number) => Row | undefined;
  /** Called with the visible range. */
  readonly onShown?: (first: number, last: number) => void;
}

type Options = VirtualizerOptions<HTMLDivElement, HTMLDivElement>;

/** A table of any length: only the visible rows are in the document, each with a fixed height. */
export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { label, count, rowHeight, columns, headings = headingsOf(columns), row, onShown } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const items = useVirtualItems(scroller, count, rowHeight);
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onShown?.(first, last), [first, last]);
  return (
    // The tab index makes the scrolling region reachable with the keyboard.
    <div class="rows" ref={scroller} role="table" aria-label={label} aria-rowcount={count + 1} tabIndex={0}>
      <div class="rows-head" role="rowgroup">
        <div role="row" class="row" aria-rowindex={1}>
          {headings}
        </div>
      </div>
      <div class="rows-body" role="rowgroup" style={{ height: `${count * rowHeight}px` }}>
        {items.map(({ index, start }) => (
          <div
            role="row"
            class="row"
            key={index}
            aria-rowindex={index + 2}
            style={{ height: `${rowHeight}px`, transform: `translateY(${start}px)` }}
          >
            {cellsOf(columns, row(index), index + 1)}
          </div>
        ))}
      </div>
    </div>
  );
}

function headingsOf<Row>(columns: readonly Column<Row>[]) {
  return columns.map((column) => (
    <div key={column.title} role="columnheader" class={column.class}>
      {column.title}
    </div>
  ));
}

function cellsOf<Row>(columns: readonly Column<Row>[], row: Row | undefined, position: number) {
  if (row === undefined) {
    return (
      <div role="cell" class="quiet">
        {formatted(position)} …
      </div>
    );
  }
  return columns.map((column) => (
    <div key={column.title} role="cell" class={column.class}>
      {column.cell(row)}
    </div>
  ));
}

function useVirtualItems(scroller: { current: HTMLDivElement | null }, count: number, rowHeight: number) {
  const [, render] = useReducer<number, void>((version) => version + 1, 0);
  const options: Options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    overscan: 8,
    onChange: () => render(undefined),
  };
  const kept = useRef<Virtualizer<HTMLDivElement, HTMLDivElement> | undefined>(undefined);
  kept.current ??= new Virtualizer(options);
  const virtualizer = kept.current;
  virtualizer.setOptions(options);
  useLayoutEffect(() => virtualizer._didMount(), []);
  useLayoutEffect(() => virtualizer._willUpdate());
  return virtualizer.getVirtualItems();
}
