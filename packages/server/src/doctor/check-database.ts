import {
  DatabaseExam,
  MigrateError,
  type MissingRight,
  OLDEST_POSTGRES,
  probeNotifications,
  SchemaError,
  type ServerFacts,
} from "@slotkeeper/postgres";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Backend } from "../config/settings.ts";
import { clockFinding } from "./check-clock.ts";
import { instanceFindings } from "./check-instances.ts";
import { type Finding, ok, problem, problemIf, warning, warningIf } from "./finding.ts";

type PostgresBackend = Extract<Backend, { readonly mode: "postgres" }>;

/** How long a notification may take before it counts as lost. */
const NOTIFICATION_MS = 2_000;

const REFUSES_TO_START = "`slotkeeper serve` exits at once: waiting does not change it.";
const GRANTS_NOTHING = "Without its database the service grants nothing: callers stay pending.";

/** Runs the checks in the order in which a service needs things, and stops if the next check would make no sense. */
export async function databaseFindings(backend: PostgresBackend, config: LoadedConfig): Promise<readonly Finding[]> {
  let exam: DatabaseExam;
  try {
    exam = await DatabaseExam.open(backend.dsn);
  } catch (error) {
    return [unusable(error)];
  }
  const findings: Finding[] = [];
  try {
    for (const check of [checkServer, checkSchema, checkNotifications, checkClock]) {
      findings.push(...(await check(exam, backend)));
    }
    const isUsable = !findings.some(({ severity, check }) => severity === "problem" && NEEDED.has(check));
    if (isUsable) findings.push(...instanceFindings(await exam.instances(backend.schema), config));
  } catch (error) {
    findings.push(unusable(error));
  } finally {
    await exam.close();
  }
  return findings;
}

/** If one of these fails, the functions of the schema cannot be called. */
const NEEDED: ReadonlySet<string> = new Set(["schema", "permissions"]);

/** `key` is the configuration key with the address of the database. */
export function unusable(error: unknown, key = "backend.postgres.dsn"): Finding {
  const failure = error instanceof MigrateError ? error : undefined;
  const fix =
    failure?.fix ?? "Start the database, or correct its address, and make sure that this machine may connect to it.";
  return problem("database", {
    code: failure?.problem ?? "STORE_FAILED",
    found: failure?.what ?? `A query to the database failed: ${(error as Error).message}.`,
    why: failure === undefined || failure.isRetryable ? GRANTS_NOTHING : REFUSES_TO_START,
    fix: `${fix} The address is in \`${key}\`.`,
  });
}

async function checkServer(exam: DatabaseExam): Promise<Finding[]> {
  const server = await exam.server();
  const findings = [...oldServer(server), ...readOnly(server), ...volatileCommits(server)];
  if (findings.length > 0) return findings;
  const through = server.isPooled ? ", through a pooler" : "";
  return [ok("database", `PostgreSQL ${server.version} at ${exam.place}${through}.`)];
}

function oldServer({ major, version }: ServerFacts): Finding[] {
  return problemIf(major < OLDEST_POSTGRES, "database", {
    code: "SERVER_TOO_OLD",
    found: `The server is PostgreSQL ${version}; ${OLDEST_POSTGRES} or later is needed.`,
    why: "The schema uses features that older servers do not have, and is tested with none of them.",
    fix: `Upgrade the server to PostgreSQL ${OLDEST_POSTGRES} or later.`,
  });
}

function readOnly({ isReadOnly }: ServerFacts): Finding[] {
  return problemIf(isReadOnly, "database", {
    code: "STORE_READ_ONLY",
    found: "The database accepts no writes: it is a standby, or the role's sessions are read-only.",
    why: GRANTS_NOTHING,
    fix: "Use the primary's address in `backend.postgres.dsn` (or target_session_attrs=read-write with several hosts in front of a proxy), and remove `default_transaction_read_only`.",
  });
}

function volatileCommits({ isAsynchronous }: ServerFacts): Finding[] {
  return warningIf(isAsynchronous, "database", {
    code: "COMMITS_NOT_DURABLE",
    found: "`synchronous_commit` is off.",
    why: "After a crash of the server a slot that was granted may be forgotten, and is then granted twice.",
    fix: "Set it on for the service's role: ALTER ROLE … SET synchronous_commit = on;",
  });
}

/** The right to read the schema is checked first: without it, the schema looks empty. */
async function checkSchema(exam: DatabaseExam, { schema }: PostgresBackend): Promise<Finding[]> {
  const missing = await exam.missingRights(schema);
  const toLook = missing.filter(({ kind }) => kind !== "function");
  if (toLook.length > 0) return [missingRight(missing)];
  try {
    const states = await exam.schema(schema);
    const applied = ok("schema", `Schema "${schema}" has all ${states.length} migrations of this version.`);
    if (missing.length > 0) return [applied, missingRight(missing)];
    return [applied, ok("permissions", `The role may call every function of the store.`)];
  } catch (error) {
    if (error instanceof SchemaError) return [otherSchema(error)];
    throw error;
  }
}

function otherSchema({ code, message }: SchemaError): Finding {
  const isBehind = code === "SCHEMA_MISSING" || code === "SCHEMA_OLD";
  return problem("schema", {
    code,
    found: message,
    why: "`slotkeeper serve` refuses to start on another version's schema, because it would misread the state.",
    fix: isBehind
      ? "Run `slotkeeper migrate` with this configuration and the role that owns the schema."
      : "Run the version of slotkeeper that migrated this schema, on every instance.",
  });
}

/** One finding for all missing rights, because they are granted together. */
function missingRight(missing: readonly MissingRight[]): Finding {
  const names = missing.map(({ kind, name, role }) => `${kind} ${name} (role ${role})`);
  const grants = missing.flatMap(({ grant }) => grant ?? []);
  const isAltered = grants.length < missing.length;
  return problem("permissions", {
    code: "PERMISSION_MISSING",
    found: `${isAltered ? "Missing or not granted" : "Not granted"}: ${names.join(", ")}.`,
    why: "Every call that needs one of them fails, and /readyz stays 503.",
    fix: isAltered
      ? "A function that the migrations made is gone: restore the schema from a backup, or migrate an empty schema."
      : `As the owner run roles.sql and grant slotkeeper_service to the role, or: ${grants.join(" ")}`,
  });
}

async function checkNotifications(exam: DatabaseExam, { dsn, listenDsn }: PostgresBackend): Promise<Finding[]> {
  const key = listenDsn === undefined ? "backend.postgres.dsn" : "backend.postgres.listenDsn";
  let receiver: DatabaseExam;
  try {
    receiver = await DatabaseExam.open(listenDsn ?? dsn);
  } catch (error) {
    return [
      warning("notifications", {
        code: "LISTEN_UNREACHABLE",
        found: `\`${key}\`: ${(error as Error).message}`,
        why: SLOW_HAND_OVERS,
        fix: "Correct `backend.postgres.listenDsn`: the direct address of the same database.",
      }),
    ];
  }
  try {
    const { isPooled } = await receiver.server();
    const probe = await probeNotifications(exam, receiver, NOTIFICATION_MS);
    if (probe.outcome === "delivered") {
      return [ok("notifications", `A notification arrived after ${probe.afterMs.toFixed(0)} ms.`)];
    }
    return [probe.outcome === "elsewhere" ? LISTENS_ELSEWHERE : lostNotification(key, isPooled)];
  } finally {
    await receiver.close();
  }
}

const SLOW_HAND_OVERS =
  "Instances do not notice each other's commits at once: a slot that is released at one instance reaches a waiter of another up to a second later.";

const LISTENS_ELSEWHERE = warning("notifications", {
  code: "LISTEN_ELSEWHERE",
  found: "`backend.postgres.listenDsn` leads to another database than `backend.postgres.dsn`.",
  why: SLOW_HAND_OVERS,
  fix: "Set `listenDsn` to the direct address of the same database, or remove it.",
});

function lostNotification(key: string, isPooled: boolean): Finding {
  const cause = isPooled ? "a pooler in between did not pass it on" : "something in between did not pass it on";
  return warning("notifications", {
    code: "NOTIFICATIONS_LOST",
    found: `A notification sent to \`${key}\` did not arrive within ${NOTIFICATION_MS / 1000} s: ${cause}.`,
    why: SLOW_HAND_OVERS,
    fix: "LISTEN needs a session of its own, which a pooler in transaction mode does not give. Set `backend.postgres.listenDsn` to the database's direct address.",
  });
}

async function checkClock(exam: DatabaseExam): Promise<Finding[]> {
  return [clockFinding(await exam.clock())];
}
