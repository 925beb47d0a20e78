import type { ComponentChildren } from "preact";

interface TileProps {
  readonly title: string;
  readonly value: string;
  /** Small, after the value: a unit, or "of 40". */
  readonly unit: string;
  readonly note: string;
  readonly children: ComponentChildren;
}

/** One important number, with its chart over time below. */
export function Tile({ title, value, unit, note, children }: TileProps) {
  return (
    <section class="tile" aria-label={title}>
      <h2 class="tile-title">{title}</h2>
      <p class="tile-value">
        <strong>{value}</strong> <span class="tile-unit">{unit}</span>
      </p>
      <p class="tile-note">{note}</p>
      {children}
    </section>
  );
}
