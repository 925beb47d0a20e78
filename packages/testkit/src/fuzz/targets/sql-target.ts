import { migrate } from "@slotkeeper/postgres";
import { Client } from "pg";
import { startPostgres } from "../../postgres/postgres-server.ts";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget, ownMemory } from "../fuzz-target.ts";
import { oddNumber, oddText } from "../odd-values.ts";

const BATCH = 100;
const SLOTS = 2;
const HOST = "fuzz.example";

/** The functions of direct callers, with arguments by name. */
const FUNCTIONS = `SELECT p.proname AS name, p.proargnames AS names,
  array(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY u (t, at) ORDER BY at) AS types, p.pronargdefaults AS defaults
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND (p.proname LIKE 'download\\_%' OR p.proname LIKE 'func\\_%')`;

interface SqlFunction {
  readonly name: string;
  readonly names: readonly string[];
  readonly types: readonly string[];
}

function argumentOf(random: Random, name: string, type: string): unknown {
  if (random.chance(0.05)) return null;
  if (name === "p_hostname" || name === "p_hostname_pattern") return random.chance(0.7) ? HOST : oddText(random);
  if (name === "p_max_slot_per_host" || name === "p_global_limit") return SLOTS;
  if (type === "text") return oddText(random);
  if (type === "boolean") return random.chance(0.5);
  const number = Math.trunc(oddNumber(random));
  return random.chance(0.5) ? random.int(-1, 100) : String(Number.isSafeInteger(number) ? number : 0);
}

/** Errors that name the caller's mistake: bad values, text that a database cannot store, too large numbers, our own. */
const EXPECTED = /^(?:22|23|42883|42703|P0001|54000)/;

export const sqlTarget: FuzzTarget = {
  name: "sql",
  title: "arguments of the SQL functions of direct callers: a result or an error of the caller, and the limit holds",
  batch: BATCH,
  share: 0.05,
  open: async () => {
    const server = await startPostgres();
    await migrate({ dsn: server.dsn });
    const client = new Client({ connectionString: server.dsn });
    await client.connect();
    const { rows: functions } = await client.query<SqlFunction>(FUNCTIONS);
    const tryOne = async (random: Random) => {
      const called = random.pick(functions);
      const inputs = called.names.slice(0, called.types.length);
      const values = inputs.map((name, at) => argumentOf(random, name, called.types[at] ?? "text"));
      const list = inputs.map((name, at) => `${name} => $${at + 1}`).join(", ");
      try {
        await client.query(`SELECT * FROM ${called.name}(${list})`, values);
      } catch (error) {
        const { code = "" } = error as { code?: string };
        if (!EXPECTED.test(code)) throw new FuzzFailure(`${called.name}: ${code} ${String(error)}`, values, error);
      }
    };
    return {
      tryBatch: async (random) => {
        for (let at = 0; at < BATCH; at++) await tryOne(random);
        const { rows } = await client.query<{ host: string; slots: number; held: number }>(
          `SELECT h.host, h.slots, slotkeeper_occupied(h.host, greatest(h.last_now, slotkeeper_now()), h.offers_until) AS held
           FROM slotkeeper_host h`,
        );
        const over = rows.find(({ slots, held }) => held > Math.max(slots, SLOTS));
        if (over !== undefined) throw new FuzzFailure(`${over.held} of ${over.slots} slots are held`, over.host);
      },
      memory: ownMemory,
      close: async () => {
        await client.end();
        await server.stop();
      },
    };
  },
};
