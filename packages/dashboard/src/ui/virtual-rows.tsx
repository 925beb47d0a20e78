import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";

interface VirtualRowsProps {
  readonly label: string;
  readonly count: number;
  readonly rowHeight: number;
  readonly header: ComponentChildren;
  readonly row: (index: number) => ComponentChildren;
  /** Called with the visible range. */
  readonly onShown?: (first: number, last: number) => void;
}

type Options = VirtualizerOptions<HTMLDivElement, HTMLDivElement>;

/** A table of any length: only the visible rows are in the document, each with a fixed height. */
export function VirtualRows({ label, count, rowHeight, header, row, onShown }: VirtualRowsProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const items = useVirtualItems(scroller, count, rowHeight);
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => onShown?.(first, last), [first, last]);
  return (
    // The tab index makes the scrolling region reachable with the keyboard.
    <div class="rows" ref={scroller} role="table" aria-label={label} aria-rowcount={count + 1} tabIndex={0}>
      <div class="rows-head" role="rowgroup">
        <div role="row" class="row" aria-rowindex={1}>
          {header}
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
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  );
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
