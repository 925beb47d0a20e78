import stringWidth from "string-width";
import { fitted } from "./top/fitted.ts";

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
