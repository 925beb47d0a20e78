import type { Client } from "pg";

interface Notice {
  readonly message?: string | undefined;
  readonly where?: string | undefined;
}

/** The plan of every statement that a call runs inside its functions, as auto_explain reports it. */
export class CapturedPlans {
  readonly #client: Client;
  readonly #notices: Notice[] = [];

  private constructor(client: Client) {
    this.#client = client;
    client.on("notice", (notice: Notice) => this.#notices.push(notice));
  }

  static async on(client: Client): Promise<CapturedPlans> {
    await client.query(`
      LOAD 'auto_explain';
      SET auto_explain.log_min_duration = 0;
      SET auto_explain.log_analyze = on;
      SET auto_explain.log_timing = off;
      SET auto_explain.log_buffers = off;
      SET auto_explain.log_nested_statements = on;
      SET auto_explain.log_level = 'notice';
      SET client_min_messages = notice;`);
    // Versions before 16 report no parameters.
    await client.query(
      "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'auto_explain.log_parameter_max_length'",
    );
    return new CapturedPlans(client);
  }

  /** Runs a statement. Returns its plans without costs, each statement once, and the most rows that any node read. */
  async of(text: string, values: readonly unknown[]): Promise<{ plans: string; mostRows: number; reply: unknown }> {
    this.#notices.length = 0;
    const { rows } = await this.#client.query<{ reply: unknown }>(text, values as unknown[]);
    const found = this.#notices.map(planOf).filter((plan) => plan !== undefined);
    const plans = `${[...new Set(found.map(withoutFigures))].sort().join("\n\n")}\n`;
    return { plans, mostRows: Math.max(0, ...found.flatMap(rowsOf)), reply: rows[0]?.reply };
  }
}

/** Undefined for the outermost statement, which only calls the function, and for what reads no table. */
function planOf({ message = "", where = "" }: Notice): string | undefined {
  const [, query = "", plan = ""] =
    /plan:\nQuery Text: ([\s\S]*?)\n((?:[A-Z][^\n]*)(?:\n +[^\n]*)*)$/.exec(message) ?? [];
  const [, name] = /PL\/pgSQL function (\w+)/.exec(where) ?? [];
  if (name === undefined || !/ on /.test(plan)) return undefined;
  return `${name}\n  ${query.trim().replaceAll(/\s+/g, " ")}\n${plan.replaceAll(/^/gm, "    ")}`;
}

function withoutFigures(plan: string): string {
  return plan
    .replaceAll(/ {2}\(cost=[^)]*\)/g, "")
    .replaceAll(/ \((?:actual [^)]*|never executed)\)/g, "")
    .replaceAll(
      /\n *(?:Heap Fetches|Rows Removed|Index Searches|Heap Blocks|Buffers|Tuples|Sort Method|Batches|Storage)[^\n]*/g,
      "",
    );
}

function rowsOf(plan: string): number[] {
  return [...plan.matchAll(/actual rows=([\d.]+) loops=(\d+)|Rows Removed by [\w ]+: ([\d.]+)/g)].map(
    ([, rows, loops, removed]) => Number(removed ?? Number(rows) * Number(loops)),
  );
}
