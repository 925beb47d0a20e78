import { computed, signal } from "@preact/signals";

/** Dark or light: the setting of the system until the person chooses. The browser stores the choice. */
export type SchemeChoice = "system" | "light" | "dark";

const KEPT_AS = "slotkeeper-scheme";
const system = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(system.matches);
system.addEventListener("change", ({ matches }) => {
  isSystemDark.value = matches;
});

export const choice = signal<SchemeChoice>(kept());

export const scheme = computed(() =>
  choice.value === "system" ? (isSystemDark.value ? "dark" : "light") : choice.value,
);

export function choose(next: SchemeChoice): void {
  choice.value = next;
  document.documentElement.dataset["scheme"] = next;
  localStorage.setItem(KEPT_AS, next);
}

function kept(): SchemeChoice {
  const text = localStorage.getItem(KEPT_AS);
  const found = text === "light" || text === "dark" ? text : "system";
  document.documentElement.dataset["scheme"] = found;
  return found;
}
