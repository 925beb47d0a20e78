// The search box of every page, bundled for the browser. It loads the index when it is first used, as a script: that works
// for pages opened from a folder, too, where `fetch` does not.
import MiniSearch from "minisearch";
import { SEARCH_OPTIONS } from "./search-options.mjs";

const root = document.currentScript.dataset.root;
const input = document.getElementById("search");
const results = document.getElementById("results");
let loading;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}assets/search-index.js`;
    script.addEventListener("load", () =>
      resolve(MiniSearch.loadJSON(globalThis.slotkeeperSearchIndex, SEARCH_OPTIONS)),
    );
    script.addEventListener("error", () => reject(new Error("The search index could not be loaded")));
    document.head.append(script);
  });
  return loading;
}

function item({ id, title, page }) {
  const link = document.createElement("a");
  link.href = root + id;
  const where = document.createElement("small");
  where.textContent = page === title ? "" : page;
  link.append(title, where);
  const row = document.createElement("li");
  row.append(link);
  return row;
}

async function show() {
  const query = input.value.trim();
  results.hidden = query === "";
  if (query === "") return;
  const found = (await load()).search(query).slice(0, 12);
  const none = document.createElement("li");
  none.className = "none";
  none.textContent = "Nothing found";
  results.replaceChildren(...(found.length === 0 ? [none] : found.map(item)));
}

function move(step) {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const next = at + step;
  if (next < 0) input.focus();
  else links[Math.min(next, links.length - 1)]?.focus();
}

for (const event of ["input", "focus"]) input.addEventListener(event, () => void show());
document.addEventListener("keydown", (event) => {
  const isInSearch = event.target.closest?.(".search") !== null;
  if (event.key === "/" && !/^(?:INPUT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    input.focus();
  } else if (event.key === "Escape") {
    results.hidden = true;
    input.blur();
  } else if (isInSearch && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (isInSearch && event.key === "Enter" && event.target === input) {
    results.querySelector("a")?.click();
  }
});
document.addEventListener("click", (event) => {
  if (event.target.closest(".search") === null) results.hidden = true;
});

// On a small screen the menu starts closed.
const menu = document.querySelector(".menu");
const isNarrow = matchMedia("(max-width: 60rem)");
const fit = () => {
  menu.open = !isNarrow.matches;
};
isNarrow.addEventListener("change", fit);
fit();
menu.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest" });
