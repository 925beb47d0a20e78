/** Text for a terminal. A name from outside cannot move the cursor, change colours or change the reading direction. */

/** Control, format, private and unassigned characters, and separators of lines, written as `\u{1b}`. */
export function harmless(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
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
