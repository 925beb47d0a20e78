import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";

const EVERY_MS = 20;
const LIVE_LEASES =
  "select count(*)::float8 as live from upstream_slot_pool where status = 'locked' and ends_at > slotkeeper_now()";
/** Connections report their counts once a second, so two readings under the same load have the same delay. */
const COUNTS = `select xact_commit + xact_rollback as transactions,
  (select jsonb_object_agg(funcname, jsonb_build_array(calls, total_time)) from pg_stat_user_functions) as functions
  from pg_stat_database where datname = current_database()`;

/** The functions that instances call, each in its own transaction. */
const CALLS = [
  "slotkeeper_commit",
  "slotkeeper_read",
  "slotkeeper_beat",
  "slotkeeper_peek",
  "slotkeeper_host_keys",
  "slotkeeper_totals",
  "slotkeeper_forget_hosts",
  "slotkeeper_forget_rows",
  "slotkeeper_ready",
] as const;

/** The work of the database so far. */
export interface Work {
  /** The calls of the instances; the following fields are parts of it. */
  readonly calls: number;
  readonly commits: number;
  readonly refused: number;
  readonly reads: number;
  /** The time inside the functions, without the flush of the write-ahead log. */
  readonly ms: number;
  /** PostgreSQL counts one more transaction for each listening connection that a notification wakes. */
  readonly wakes: number;
}

/**
 * Checks the limit in SQL and counts the work of the database, without its own queries. The server needs
 * `track_functions = pl`.
 */
export class DatabaseWatch {
  /** How often there were more live leases than slots. */
  violations = 0;
  readonly #pool: Pool;
  readonly #looking: Promise<void>;
  #looks = 0;
  #isOver = false;

  constructor(dsn: string, slots: number) {
    this.#pool = new Pool({ connectionString: dsn, max: 2 });
    this.#looking = this.#look(slots);
    // `stop` reports a failed reading. Until then it must not end the process and leave the fleet behind.
    this.#looking.catch(() => {});
  }

  async work(): Promise<Work> {
    const { transactions, functions } = await this.#query<{ transactions: string; functions: Functions }>(COUNTS);
    const of = (name: string) => functions[name] ?? [0, 0];
    const calls = CALLS.reduce((sum, name) => sum + of(name)[0], 0);
    return {
      calls,
      commits: of("slotkeeper_commit")[0],
      refused: of("slotkeeper_refuse")[0],
      reads: of("slotkeeper_read")[0],
      ms: CALLS.reduce((sum, name) => sum + of(name)[1], 0),
      wakes: Number(transactions) - this.#looks - calls,
    };
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    try {
      await this.#looking;
    } finally {
      await this.#pool.end();
    }
  }

  async #look(slots: number): Promise<void> {
    while (!this.#isOver) {
      if ((await this.#query<{ live: number }>(LIVE_LEASES)).live > slots) this.violations++;
      await pause(EVERY_MS);
    }
  }

  async #query<T extends object>(sql: string): Promise<T> {
    this.#looks++;
    const { rows } = await this.#pool.query<T>(sql);
    return rows[0] as T;
  }
}

type Functions = { readonly [name: string]: readonly [calls: number, ms: number] };
