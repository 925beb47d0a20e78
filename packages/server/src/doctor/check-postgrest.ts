import { type ClockReading, PostgrestStore } from "@slotkeeper/postgres";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Backend } from "../config/settings.ts";
import { explainStart } from "../store/open-in-time.ts";
import { clockFinding } from "./check-clock.ts";
import { unusable } from "./check-database.ts";
import { instanceFindings } from "./check-instances.ts";
import { type Finding, ok, problem } from "./finding.ts";

type PostgrestBackend = Extract<Backend, { readonly mode: "postgrest" }>;

/** Not the key of a host: keys are hashes, or names without spaces. */
const NO_HOST = "slotkeeper doctor";

/** Only the functions of the store can be called through PostgREST. They show whether a grant could be stored. */
export async function postgrestFindings(backend: PostgrestBackend, config: LoadedConfig): Promise<readonly Finding[]> {
  const { baseUrl, authHeader, schema } = backend;
  let store: PostgrestStore | undefined;
  try {
    store = await PostgrestStore.open({ baseUrl, authHeader, schema });
    const health = await store.health();
    if (!health.isReady) return [notReady(health)];
    return [
      ok("database", `The store's functions answer through PostgREST at ${baseUrl}.`),
      clockFinding(await readClock(store)),
      ...instanceFindings(await store.instances(), config),
    ];
  } catch (error) {
    return [unusable(explainStart(error, backend), "backend.postgrest.baseUrl")];
  } finally {
    await store?.close();
  }
}

function notReady({
  reason,
  detail,
  error,
}: Extract<Awaited<ReturnType<PostgrestStore["health"]>>, { isReady: false }>) {
  return problem("database", {
    code: reason,
    found: `${detail}: ${(error as Error).message}.`,
    why: "The service grants nothing, and /readyz is 503.",
    fix: "Run `slotkeeper doctor` with `backend.postgres.dsn` set to the address of the database: it reports what is missing.",
  });
}

async function readClock(store: PostgrestStore): Promise<ClockReading> {
  const [askedAt, started] = [Date.now(), performance.now()];
  const { now } = await store.read(NO_HOST, undefined);
  const errorMs = (performance.now() - started) / 2;
  return { offsetMs: now - askedAt - errorMs, errorMs };
}
