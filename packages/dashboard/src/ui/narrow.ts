import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 640px)");

/** A phone: rows of tables take two lines. The same width as in the style sheets. */
export const isNarrow = signal(query.matches);

query.addEventListener("change", ({ matches }) => {
  isNarrow.value = matches;
});
