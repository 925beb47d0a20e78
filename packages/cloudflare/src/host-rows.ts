import type { ObjectStorage, SqlStorage } from "./workers.ts";

type RowStorage = Pick<ObjectStorage, "sql" | "transactionSync">;

/**
 * The rows of a journal in the SQLite storage of an object.
 *
 * ROWS1  `read` returns the rows of the last snapshot and everything after it, in the order of writing.
 * ROWS2  A row is written over one that an older snapshot left behind. So nothing is deleted, which would cost as much as
 *     writing, and the table has at most as many rows as two snapshots and what was written between them.
 * ROWS3  What one call writes is one transaction.
 *
 * The storage has the number of its schema. A version reads its own and earlier schemas, and refuses a later one before it
 * changes anything.
 */
export class HostRows {
  readonly #storage: RowStorage;
  readonly #sql: SqlStorage;
  readonly #onCreated: () => void;
  /** Numbers of rows that no longer count. */
  #free: number[] = [];
  #rows = 0;
  #written = 0;
  #start = 0;
  #isCreated: boolean;

  /** `onCreated`: the first row was written. Throws a `StorageSchemaError`. */
  constructor(storage: RowStorage, onCreated: () => void) {
    this.#storage = storage;
    this.#onCreated = onCreated;
    this.#sql = storage.sql;
    this.#isCreated = this.#checkSchema();
  }

  /** How many rows were written since the last snapshot began. */
  get sinceSnapshot(): number {
    return this.#written - this.#start;
  }

  /** False if the storage is empty. */
  get isCreated(): boolean {
    return this.#isCreated;
  }

  /** The bodies that count. Call it once, before `append`. */
  read(): string[] {
    if (!this.#isCreated) return [];
    const rows = [...this.#sql.exec("SELECT slot, seq, start, body FROM slotkeeper_journal ORDER BY seq")] as Row[];
    const last = rows.at(-1);
    if (last === undefined) return [];
    this.#rows = rows.length;
    this.#written = last.seq;
    this.#start = last.start;
    this.#free = rows.filter(({ start }) => start !== last.start).map(({ slot }) => slot);
    return rows.filter(({ start }) => start === last.start).map(({ body }) => body);
  }

  /** Either all bodies are written, or it throws and nothing has changed. */
  append(bodies: readonly string[]): void {
    this.#write(bodies, this.#start);
  }

  /** The bodies begin with a whole snapshot: all earlier rows may be written over from now on. */
  restart(bodies: readonly string[]): void {
    const before = this.#start;
    this.#write(bodies, this.#written);
    if (before === this.#start) return;
    const old = this.#sql.exec("SELECT slot FROM slotkeeper_journal WHERE start = ?", before);
    this.#free.push(...Array.from(old, ({ slot }) => slot as number));
  }

  #write(bodies: readonly string[], start: number): void {
    let [seq, rows] = [this.#written, this.#rows];
    const free = this.#free.slice(-bodies.length);
    const left = this.#free.length - free.length;
    this.#storage.transactionSync(() => {
      if (!this.#isCreated) this.#create();
      for (const body of bodies) this.#sql.exec(WRITE, free.pop() ?? ++rows, ++seq, start, body);
    });
    if (!this.#isCreated) this.#onCreated();
    this.#isCreated = true;
    this.#free = [...this.#free.slice(0, left), ...free];
    this.#written = seq;
    this.#rows = rows;
    this.#start = start;
  }

  /** When the host was last reported to the directory. */
  get reportedAt(): number {
    if (!this.#isCreated) return Number.NEGATIVE_INFINITY;
    const [row] = this.#sql.exec("SELECT value FROM slotkeeper WHERE name = 'reportedAt'");
    return (row?.["value"] as number | undefined) ?? Number.NEGATIVE_INFINITY;
  }

  set reportedAt(at: number) {
    if (this.#isCreated) this.#sql.exec("INSERT OR REPLACE INTO slotkeeper (name, value) VALUES ('reportedAt', ?)", at);
  }

  #create(): void {
    this.#sql.exec("CREATE TABLE slotkeeper (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID");
    this.#sql.exec(
      "CREATE TABLE slotkeeper_journal (slot INTEGER PRIMARY KEY, seq INTEGER NOT NULL, start INTEGER NOT NULL, body TEXT NOT NULL)",
    );
    this.#sql.exec("INSERT INTO slotkeeper (name, value) VALUES ('schema', ?)", SCHEMA);
  }

  #checkSchema(): boolean {
    const [table] = this.#sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'slotkeeper'");
    if (table === undefined) return false;
    const [row] = this.#sql.exec("SELECT value FROM slotkeeper WHERE name = 'schema'");
    const schema = row?.["value"] as number | undefined;
    if (schema !== SCHEMA) throw new StorageSchemaError(schema);
    return true;
  }
}

/** The schema that this version reads and writes. */
const SCHEMA = 1;
const WRITE = "INSERT OR REPLACE INTO slotkeeper_journal (slot, seq, start, body) VALUES (?, ?, ?, ?)";

interface Row {
  readonly slot: number;
  readonly seq: number;
  /** `seq` of the last row before the snapshot that this row belongs to. */
  readonly start: number;
  readonly body: string;
  readonly [column: string]: unknown;
}

/** A later version of this package wrote the storage. Nothing was changed. */
export class StorageSchemaError extends Error {
  override readonly name = "StorageSchemaError";
  readonly code = "STORAGE_SCHEMA";

  constructor(schema: number | undefined) {
    super(
      `The storage of this object has schema ${String(schema)}, and this version of @slotkeeper/cloudflare reads ${SCHEMA}. ` +
        "Nothing was changed. Deploy the version that wrote it, or a later one.",
    );
  }
}
