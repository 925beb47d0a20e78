import type { ComponentChildren } from "preact";

interface CardProps {
  /** Unique on the page. */
  readonly name: string;
  /** Classes for its looks. */
  readonly looks?: string;
  readonly title: ComponentChildren;
  readonly note: ComponentChildren;
  /** After the note. */
  readonly link?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A part of a page, with its heading and a note beside it. */
export function Card({ name, looks = "", title, note, link, children }: CardProps) {
  return (
    <section class={`card ${looks}`} aria-labelledby={`${name}-title`}>
      <div class="card-head">
        <h2 id={`${name}-title`}>{title}</h2>
        <p class="quiet">{note}</p>
        {link}
      </div>
      {children}
    </section>
  );
}
