import {
  type BookRecord,
  decodeBook,
  type HostStore,
  type KeptHost,
  MemoryStore,
  type RecordKind,
} from "@slotkeeper/queue";
import type { ReadableStore } from "@slotkeeper/server/portable";
import type { Clock } from "slotkeeper";
import type { SqlStorage } from "./workers.ts";

/** What a host reports to the directory: its book, or that it is no longer in use. */
export type HostReport = KeptHost | { readonly host: string; readonly isGone: true };

export const REPORT_PATH = "/report";
/** A host reports at most once in this time. */
export const REPORT_MS = 60_000;
/** A host that has not reported for a week is no longer listed. */
const KEPT_MS = 7 * 86_400_000;

/**
 * The list of all hosts, in an object of its own: the last report of each host. Operators read it with the handlers of the
 * service. A lease that has ended since its report is not counted, because a book contains its times.
 */
export class Directory implements ReadableStore {
  readonly isShared = false;
  readonly #sql: SqlStorage;
  readonly #clock: Clock;
  /** Made when it is asked for, from all rows. */
  #memory: MemoryStore | undefined;

  constructor(sql: SqlStorage, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS slotkeeper_hosts (host TEXT PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL)",
    );
  }

  add(report: HostReport): void {
    const now = this.#clock.now();
    this.#memory = undefined;
    if ("isGone" in report) this.#sql.exec("DELETE FROM slotkeeper_hosts WHERE host = ?", report.host);
    else {
      const row = [report.host, now, JSON.stringify(report)] as const;
      this.#sql.exec("INSERT OR REPLACE INTO slotkeeper_hosts (host, at, body) VALUES (?, ?, ?)", ...row);
    }
    this.#sql.exec("DELETE FROM slotkeeper_hosts WHERE at < ?", now - KEPT_MS);
  }

  peek: HostStore["peek"] = (hosts) => this.#hosts.peek(hosts);
  hostKeys: HostStore["hostKeys"] = () => this.#hosts.hostKeys();
  totals: HostStore["totals"] = () => this.#hosts.totals();
  instances: HostStore["instances"] = () => this.#hosts.instances();

  get #hosts(): MemoryStore {
    this.#memory ??= new MemoryStore({ clock: this.#clock, hosts: this.#read() });
    return this.#memory;
  }

  *#read(): Iterable<KeptHost> {
    for (const { body } of this.#sql.exec("SELECT body FROM slotkeeper_hosts")) {
      const report = JSON.parse(body as string) as KeptHost;
      yield { ...report, ...decodeBook(report) };
    }
  }
}

const SHOWN: ReadonlySet<RecordKind> = new Set(["lease", "offer", "limits", "account", "waiter", "budget"]);
/** Of each kind: a row of the directory has at most 2 MB. */
const MOST_SHOWN = 1_000;

/** A report without what the list does not show. It contains no tokens. */
export function reportOf({ host, tag, head, records }: KeptHost): HostReport {
  const counts = new Map<RecordKind, number>();
  const isShown = ({ kind }: BookRecord) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return SHOWN.has(kind) && count <= MOST_SHOWN;
  };
  return { host, tag, head, records: records.filter(isShown).map(withoutToken) };
}

function withoutToken(record: BookRecord): BookRecord {
  return record.kind === "lease" ? { ...record, key: `lease-${record.fence}` } : record;
}
