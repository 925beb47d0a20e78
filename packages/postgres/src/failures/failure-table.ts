/**
 * Why the database cannot be used: a code for programs, with a sentence that any caller may read. It contains no
 * address and no user name. `/readyz`, the metric `slotkeeper_store_ready` and the log use the same codes.
 */
export const STORE_PROBLEMS = {
  STORE_UNREACHABLE: "The database cannot be reached",
  STORE_SILENT: "The database does not answer in time",
  STORE_READ_ONLY: "The database accepts no writes: it is a standby, or its sessions are read-only",
  STORE_FORBIDDEN: "The database refuses the service: a permission is missing, or the user or password is wrong",
  STORE_SCHEMA: "The schema of the database belongs to another version",
  STORE_FULL: "The disk of the database is full",
  STORE_BUSY: "The database has no free connection or memory",
  STORE_FAILED: "Calls to the database fail",
} as const;

/** What kind of failure keeps a database from being used. */
export type StoreProblem = keyof typeof STORE_PROBLEMS;

/**
 * The program that gets the failure: the advice depends on it. `postgrest`: a service that uses its database through
 * PostgREST.
 */
export type Asker = "serve" | "migrate" | "postgrest";

export interface KnownFailure {
  readonly problem: StoreProblem;
  /** The call itself is correct, and may succeed later. Otherwise it fails until an operator acts. */
  readonly isRetryable: boolean;
  /** The failure affects only callers of this host. The store as a whole works. */
  readonly isOfHost?: true;
  /** What happened, for a failure that was not sent by a server. */
  readonly says?: string;
  /** What an operator can do. */
  readonly advice?: string | { readonly [asker in Asker]: string };
}

const stopped: KnownFailure = { problem: "STORE_UNREACHABLE", isRetryable: true };
const cut: KnownFailure = {
  ...stopped,
  says: "the connection was cut",
  advice: "Look into the log of the server: the server or a proxy ended the connection.",
};
const noWay: KnownFailure = {
  ...stopped,
  says: "no network route leads to it",
  advice: "Check the route to it, and the firewalls in between.",
};
const silent: KnownFailure = {
  problem: "STORE_SILENT",
  isRetryable: true,
  says: "it does not answer",
  advice: "Check that the server runs, and that no firewall in between drops packets.",
};
const otherSchema: KnownFailure = { problem: "STORE_SCHEMA", isRetryable: false };
const forbidden: KnownFailure = { problem: "STORE_FORBIDDEN", isRetryable: false };
/** Waiting does not change a certificate or the settings of the server. */
const unsafe: KnownFailure = { problem: "STORE_UNREACHABLE", isRetryable: false };
const untrusted: KnownFailure = {
  ...unsafe,
  says: "its certificate is not signed by an authority that this machine trusts",
  advice: "Name the file of that authority's certificate in the dsn: sslrootcert=FILE.",
};
const SERVICE_ROLE = "its role must be slotkeeper_service, or be a member of it (roles.sql)";

/**
 * Every failure with a code: SQLSTATEs, whole classes of them by their first two characters, our own (`SK…`), and those
 * of the operating system. This is the only table: start-up, `migrate`, `/readyz` and the retries of the engine all use
 * it.
 */
const FAILURES: { readonly [code: string]: KnownFailure } = {
  "08": { problem: "STORE_UNREACHABLE", isRetryable: true },
  "08P01": {
    problem: "STORE_UNREACHABLE",
    isRetryable: true,
    advice:
      "A pooler in front of the database reports this: check the user, password and database of the dsn, and the settings of the pooler.",
  },
  "25006": {
    problem: "STORE_READ_ONLY",
    isRetryable: true,
    advice: "This is a standby or a read-only session; use the primary.",
  },
  "28P01": { ...forbidden, advice: "Check the user and password of the dsn." },
  "28000": {
    ...forbidden,
    advice:
      "Check the user of the dsn, and pg_hba.conf. If the message says `no encryption`, the server requires SSL: add sslmode=require.",
  },
  "3D000": {
    problem: "STORE_UNREACHABLE",
    isRetryable: false,
    advice: "Create the database (createdb), or check the dsn.",
  },
  "3F000": { ...otherSchema, advice: "Run slotkeeper migrate, or check `backend.postgres.schema`." },
  "40001": { problem: "STORE_FAILED", isRetryable: true, isOfHost: true },
  "40P01": {
    problem: "STORE_FAILED",
    isRetryable: true,
    isOfHost: true,
    advice: "It deadlocked with a program that calls the SQL functions directly; try again.",
  },
  "42501": {
    ...forbidden,
    advice: {
      serve:
        "Give the role of the dsn the permissions of slotkeeper_service: run roles.sql, then GRANT slotkeeper_service TO …",
      migrate: "Use a role that may create objects in this schema, or grant it: GRANT CREATE, USAGE ON SCHEMA … TO …",
      postgrest: `Check the token in \`authHeader\`: ${SERVICE_ROLE}, and PostgREST's own role must be a member of it.`,
    },
  },
  "42883": { ...otherSchema, advice: "A function of the schema is missing. Run slotkeeper migrate --status." },
  "42P01": { ...otherSchema, advice: "A table of the schema is missing. Run slotkeeper migrate --status." },
  "53": { problem: "STORE_BUSY", isRetryable: true },
  "53100": { problem: "STORE_FULL", isRetryable: true, advice: "Make room on the database's disk." },
  "53300": {
    problem: "STORE_BUSY",
    isRetryable: true,
    advice: "All connections of the server are in use: raise max_connections, or lower `backend.postgres.poolSize`.",
  },
  "55P03": {
    problem: "STORE_FAILED",
    isRetryable: true,
    isOfHost: true,
    advice: "Another transaction holds a lock on the same rows or tables; try again when it has ended.",
  },
  "57014": { problem: "STORE_SILENT", isRetryable: true },
  "57P01": stopped,
  "57P02": stopped,
  "57P03": { ...stopped, advice: "The server is starting or stopping; try again." },
  "57P05": stopped,
  SK001: { ...otherSchema, advice: "Stop the instances of the other version: docs/guides/postgres.md, Upgrading." },
  ECONNREFUSED: {
    ...stopped,
    says: "no server listens there",
    advice: "Start the server, or correct the host and port of the address.",
  },
  ENOENT: {
    ...stopped,
    says: "the socket does not exist",
    advice: "Start the server, or correct the folder of its socket.",
  },
  ENOTFOUND: { ...stopped, says: "the host name is unknown", advice: "Correct the host of the address, or the DNS." },
  EAI_AGAIN: {
    ...stopped,
    says: "the host name could not be resolved",
    advice: "Check the DNS of this machine.",
  },
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: silent,
  // All connections were in use.
  ACQUIRE_TIMEOUT: silent,
  ECONNRESET: cut,
  EPIPE: cut,
  NO_SSL: {
    ...unsafe,
    says: "the server does not offer SSL",
    advice: "Turn SSL on at the server; or, where the network in between is safe, use sslmode=disable in the dsn.",
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    ...unsafe,
    says: "its certificate is for another name",
    advice: "Use the name in the certificate as the host of the address.",
  },
  CERT_HAS_EXPIRED: { ...unsafe, says: "its certificate has expired", advice: "Renew the server's certificate." },
  // Through PostgREST: its own codes, those of `fetch`, and those of proxies in between.
  PGRST000: stopped,
  PGRST001: stopped,
  PGRST002: stopped,
  PGRST003: { problem: "STORE_BUSY", isRetryable: true },
  PGRST106: { ...otherSchema, advice: "Set `schema` to one of the schemas in PostgREST's db-schemas." },
  PGRST202: {
    ...otherSchema,
    advice:
      "Run slotkeeper migrate, name the schema in PostgREST's db-schemas, and reload its schema cache: NOTIFY pgrst, 'reload schema'.",
  },
  PGRST301: {
    ...forbidden,
    advice: "Check the token in `authHeader`: PostgREST verifies it with its jwt-secret.",
  },
  PGRST302: {
    ...forbidden,
    advice: `Set \`authHeader\`: PostgREST has no db-anon-role. Of the token: ${SERVICE_ROLE}.`,
  },
  PGRST303: { ...forbidden, advice: "Check the token in `authHeader`: it may have expired." },
  UND_ERR_SOCKET: cut,
  UND_ERR_CONNECT_TIMEOUT: silent,
  FETCH_FAILED: stopped,
  HTTP_429: { problem: "STORE_BUSY", isRetryable: true },
  HTTP_500: stopped,
  HTTP_502: stopped,
  HTTP_503: stopped,
  HTTP_504: { problem: "STORE_SILENT", isRetryable: true },
};

/** Errors of the driver have no code: they are recognized by the start of their message. */
const MESSAGES: readonly (readonly [RegExp, string])[] = [
  [
    /^(?:Query read timeout|timeout exceeded|timeout expired|Connection terminated due to connection timeout)/i,
    "ETIMEDOUT",
  ],
  [/^The server does not support SSL/i, "NO_SSL"],
  [/^(?:Connection terminated|Client (?:was closed|has encountered))/i, "ECONNRESET"],
];

const UNKNOWN: KnownFailure = { problem: "STORE_FAILED", isRetryable: false };

/** The code of PostgreSQL or of the operating system. An error of the driver gets the code of the same failure. */
export function failureCode(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (typeof code === "string") return code;
  return typeof message === "string" ? MESSAGES.find(([pattern]) => pattern.test(message))?.[1] : undefined;
}

/** What an operator can do about a failure. Undefined: the table has no advice. */
export function adviceOf({ advice }: KnownFailure, asker: Asker): string | undefined {
  return typeof advice === "object" ? advice[asker] : advice;
}

export function knownFailure(code: string | undefined): KnownFailure {
  return (code === undefined ? undefined : (FAILURES[code] ?? FAILURES[code.slice(0, 2)])) ?? UNKNOWN;
}
