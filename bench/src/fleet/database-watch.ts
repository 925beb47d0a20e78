import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";

const EVERY_MS = 20;
const LIVE_LEASES =
  "select count(*) as live from upstream_slot_pool where status = 'locked' and ends_at > slotkeeper_now()";
const TRANSACTIONS =
  "select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()";

/** Judges the limit in SQL and counts transactions, its own left out. */
export class DatabaseWatch {
  /** How often more leases lived than there are slots. */
  violations = 0;
  readonly #pool: Pool;
  readonly #looking: Promise<void>;
  #looks = 0;
  #isOver = false;

  constructor(dsn: string, slots: number) {
    this.#pool = new Pool({ connectionString: dsn, max: 2 });
    this.#looking = this.#look(slots);
    // A failed look is told by `stop`; until then it must not end the process and leave the fleet behind.
    this.#looking.catch(() => {});
  }

  async transactions(): Promise<number> {
    return (await this.#count(TRANSACTIONS)) - this.#looks;
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
      if ((await this.#count(LIVE_LEASES)) > slots) this.violations++;
      await pause(EVERY_MS);
    }
  }

  async #count(sql: string): Promise<number> {
    this.#looks++;
    const { rows } = await this.#pool.query<Record<string, string>>(sql);
    return Number(Object.values(rows[0] ?? {})[0]);
  }
}
