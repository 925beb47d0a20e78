import type { Client } from "pg";

interface Notice {
  readonly message?: string | undefined;
  readonly where?: string | undefined;
}

/** The plan of every statement that a call runs inside its functions, as auto_explain tells it, without costs. */
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
      SET auto_explain.log_nested_statements = on;
      SET auto_explain.log_level = 'notice';
      SET client_min_messages = notice;`);
    // Before version 16 it tells no parameters.
    await client.query(
      "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'auto_explain.log_parameter_max_length'",
    );
    return new CapturedPlans(client);
  }

  /** Runs a statement; its plans, each statement of each function once, in the order of the functions' names. */
  async of(text: string, values: readonly unknown[]): Promise<{ readonly plans: string; readonly reply: unknown }> {
    this.#notices.length = 0;
    const { rows } = await this.#client.query<{ reply: unknown }>(text, values as unknown[]);
    const plans = new Set(this.#notices.map(planOf).filter((plan) => plan !== undefined));
    return { plans: `${[...plans].sort().join("\n\n")}\n`, reply: rows[0]?.reply };
  }
}

/** Undefined for the outermost statement, which only calls the function, and for what reads no table. */
function planOf({ message = "", where = "" }: Notice): string | undefined {
  const [, query = "", plan = ""] =
    /plan:\nQuery Text: ([\s\S]*?)\n((?:[A-Z][^\n]*)(?:\n +[^\n]*)*)$/.exec(message) ?? [];
  const [, name] = /PL\/pgSQL function (\w+)/.exec(where) ?? [];
  if (name === undefined || !/ on /.test(plan)) return undefined;
  const shape = plan.replaceAll(/ {2}\(cost=[^)]*\)/g, "");
  return `${name}\n  ${query.trim().replaceAll(/\s+/g, " ")}\n${shape.replaceAll(/^/gm, "    ")}`;
}
