import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 640px)");

/** Whether the screen is as narrow as a phone: rows of tables take two lines. The style sheets use the same width. */
export const isNarrow = signal(query.matches);

query.addEventListener("change", ({ matches }) => {
  isNarrow.value = matches;
});
