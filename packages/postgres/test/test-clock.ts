import type { Client } from "pg";

/**
 * Replaces the clock of the database for all connections by one that the test sets. It starts at the real time, so that
 * it agrees with the timestamps in the tables. It is for tests of the SQL functions and the stores on a real database.
 * Code that takes a `Clock` gets the `VirtualClock` of the testkit instead.
 */
export class TestClock {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async install(client: Client): Promise<TestClock> {
    await client.query(`
      CREATE TABLE test_clock AS SELECT slotkeeper_now() AS now;
      CREATE OR REPLACE FUNCTION slotkeeper_now() RETURNS double precision
      LANGUAGE sql VOLATILE AS 'SELECT now FROM public.test_clock'`);
    return new TestClock(client);
  }

  async advance(ms: number): Promise<void> {
    await this.#client.query("UPDATE test_clock SET now = now + $1", [ms]);
  }
}
