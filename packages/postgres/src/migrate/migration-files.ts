import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

/** One migration: a numbered file of `sql/`. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly file: string;
  readonly sql: string;
  /** The checksum of the text. A migration must not change after it was applied. */
  readonly checksum: string;
}

const FOLDER = new URL("../../sql/", import.meta.url);
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;

/** All migrations of this version, in the order in which they are applied: `sql/NNNN_name.sql`. */
export function readMigrations(folder: URL = FOLDER): readonly Migration[] {
  const migrations = readdirSync(folder)
    .filter((file) => /^\d/.test(file))
    .sort()
    .map((file) => readMigration(folder, file));
  for (const [index, { number }] of migrations.entries()) {
    if (migrations[index - 1]?.number === number) throw new RangeError(`Two migrations have the number ${number}`);
  }
  return migrations;
}

function readMigration(folder: URL, file: string): Migration {
  const [, digits, name] = FILE_NAME.exec(file) ?? [];
  if (digits === undefined || name === undefined) {
    throw new RangeError(`Expected a migration to be named NNNN_name.sql, got ${file}`);
  }
  const sql = readFileSync(new URL(file, folder), "utf8").replaceAll("\r\n", "\n");
  return { number: Number(digits), name, file, sql, checksum: createHash("sha256").update(sql).digest("hex") };
}
