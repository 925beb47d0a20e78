/**
 * Text for a terminal. A name from outside cannot move the cursor, change colours or change the reading direction, and
 * it takes exactly the given number of columns.
 */

/** Control, format, private and unassigned characters, and separators of lines, written as `\u{1b}`. */
export function harmless(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Scripts and symbols that terminals draw two columns wide. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const COMBINING = /\p{M}/u;

function widthOf(character: string): number {
  if (COMBINING.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/**
 * Returns text of exactly this number of columns: cut with `…`, or padded at the end or, for numbers, at the beginning.
 */
export function fitted(text: string, columns: number, side: "start" | "end" = "start"): string {
  const [kept, width] = cut(text, columns);
  const space = " ".repeat(Math.max(0, columns - width));
  return side === "start" ? kept + space : space + kept;
}

function cut(text: string, columns: number): [kept: string, width: number] {
  const characters = Array.from(text);
  const whole = characters.reduce((sum, character) => sum + widthOf(character), 0);
  if (whole <= columns) return [text, whole];
  let [kept, width] = ["", 0];
  for (const character of characters) {
    if (width + widthOf(character) > columns - 1) break;
    kept += character;
    width += widthOf(character);
  }
  return columns <= 0 ? ["", 0] : [`${kept}…`, width + 1];
}

/** `120 ms`, `4.7 s`, `3 min 5 s`, `2 h 5 min`. */
export function spanOf(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function countOf(value: number): string {
  return Math.round(value).toLocaleString("en");
}
