/** The results of a run, kept in a file after each measurement, so that a run can be continued. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { tableRow } from "../page.ts";
import { type Figures, ROWS } from "./rows.ts";
import { SUBJECTS, type SubjectId } from "./subjects.ts";

export type Result = { readonly figures: Figures } | { readonly failure: string };

const GUIDE = fileURLToPath(new URL("../../../docs/guides/one-machine.md", import.meta.url));
const MARKED = /(<!-- bench:local -->\n)[^]*(<!-- end of bench:local -->)/;

export class Results {
  readonly #file: string | undefined;
  readonly #kept: { [row: string]: { [subject: string]: Result } };

  constructor(file: string | undefined) {
    this.#file = file;
    this.#kept = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  }

  get(row: string, subject: SubjectId): Result | undefined {
    return this.#kept[row]?.[subject];
  }

  put(row: string, subject: SubjectId, result: Result): void {
    this.#kept[row] = { ...this.#kept[row], [subject]: result };
    if (this.#file === undefined) return;
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(this.#kept, undefined, 2)}\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  text(row: string, subject: SubjectId): string {
    const result = this.get(row, subject);
    if (result === undefined) return "–";
    return "failure" in result ? `failed: ${result.failure}` : (ROWS[row]?.text(result.figures) ?? "");
  }

  /** A line for each measurement: the texts are too long for a column for each subject. */
  table(): string {
    const measured = Object.entries(ROWS).flatMap(([id, { title, subjects }]) =>
      SUBJECTS.filter((subject) => subjects.includes(subject.id) && this.get(id, subject.id) !== undefined).map(
        (subject, at) => tableRow([at === 0 ? title : "", subject.about, this.text(id, subject.id)]),
      ),
    );
    return [tableRow(["", "", "measured"]), tableRow(["---", "---", "---"]), ...measured].join("\n");
  }

  /** Writes the table into the guide. */
  writeGuide(): void {
    const guide = readFileSync(GUIDE, "utf8");
    writeFileSync(
      GUIDE,
      guide.replace(MARKED, (_, begin, end) => `${begin}\n${this.table()}\n\n${end}`),
    );
  }
}
