import { SORTS, shownHosts, type TopModel } from "./top-model.ts";

/** The sequences that a terminal sends for keys that are not characters. */
const NAMES: { readonly [sequence: string]: string } = {
  "\u001b[A": "up",
  "\u001bOA": "up",
  "\u001b[B": "down",
  "\u001bOB": "down",
  "\u001b[C": "right",
  "\u001b[D": "left",
  "\u001b[5~": "page-up",
  "\u001b[6~": "page-down",
  "\u001b[H": "home",
  "\u001b[F": "end",
  "\u001b": "escape",
  "\r": "enter",
  "\n": "enter",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u0003": "interrupt",
};

/** Splits input into keys: a fast typist, or a terminal that buffers, sends several at once. */
export function keysIn(input: string): string[] {
  // oxlint-disable-next-line no-control-regex -- a terminal's keys are control characters
  const found = input.match(/\u001b(?:\[[\d;]*[A-Za-z~]|O[A-Z])?|[\s\S]/gu) ?? [];
  return found.map((key) => NAMES[key] ?? key);
}

/** The model after a key. `quit` ends the program. */
export function afterKey(model: TopModel, key: string, pageSize: number): TopModel | "quit" {
  if (key === "interrupt") return "quit";
  if (model.isTyping) return afterTyping(model, key);
  if (key === "q") return "quit";
  if (model.open !== undefined) return isBack(key) ? { ...model, open: undefined } : model;
  return afterMove(model, key, pageSize) ?? afterCommand(model, key);
}

function isBack(key: string): boolean {
  return key === "escape" || key === "backspace" || key === "left" || key === "h";
}

function afterTyping(model: TopModel, key: string): TopModel {
  if (key === "enter") return { ...model, isTyping: false };
  if (key === "escape") return { ...model, isTyping: false, search: "" };
  if (key === "backspace") return { ...model, search: Array.from(model.search).slice(0, -1).join("") };
  return Array.from(key).length === 1 ? { ...model, search: model.search + key } : model;
}

function afterCommand(model: TopModel, key: string): TopModel {
  const { sort, isReversed, cursor } = model;
  const column = SORTS[Number(key) - 1];
  if (column !== undefined) return { ...model, sort: column, isReversed: column === sort && !isReversed };
  switch (key) {
    case "s": {
      const next = SORTS[(SORTS.indexOf(sort) + 1) % SORTS.length] ?? sort;
      return { ...model, sort: next, isReversed: false };
    }
    case "r":
      return { ...model, isReversed: !isReversed };
    case "/":
      return { ...model, isTyping: true };
    case "escape":
      return { ...model, search: "" };
    case "enter":
    case "right":
    case "l":
      return { ...model, open: cursor ?? shownHosts(model)[0]?.host };
    default:
      return model;
  }
}

function afterMove(model: TopModel, key: string, pageSize: number): TopModel | undefined {
  const rows = shownHosts(model);
  const steps: { readonly [key: string]: number } = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    "page-up": -pageSize,
    "page-down": pageSize,
    home: -rows.length,
    end: rows.length,
  };
  const step = steps[key];
  if (step === undefined || rows.length === 0) return undefined;
  const at = Math.max(
    0,
    rows.findIndex(({ host }) => host === model.cursor),
  );
  return { ...model, cursor: rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.host };
}
