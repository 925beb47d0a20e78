import stringWidth from "string-width";

const GRAPHEMES = new Intl.Segmenter();

/** Rows of cells as lines of text, with aligned columns. */
export function alignedRows(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) => Math.max(...rows.map((row) => stringWidth(row[at] ?? ""))));
  const lines = rows.map((row) =>
    row
      .map((cell, at) => fitted(cell, widths[at] ?? 0))
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}

/**
 * Returns text of exactly this number of columns of a terminal: cut with `…`, or padded at the end or, for numbers, at
 * the beginning.
 */
export function fitted(text: string, columns: number, side: "start" | "end" = "start"): string {
  const kept = cut(text, columns);
  const space = " ".repeat(Math.max(0, columns - stringWidth(kept)));
  return side === "start" ? kept + space : space + kept;
}

function cut(text: string, columns: number): string {
  if (stringWidth(text) <= columns) return text;
  if (columns <= 0) return "";
  let kept = "";
  let left = columns - 1;
  for (const { segment } of GRAPHEMES.segment(text)) {
    left -= stringWidth(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}
