import type { ClientConfig } from "pg";

/** The database could not be used. The message says why and what to do, and never holds the password. */
export class MigrateError extends Error {
  override readonly name = "MigrateError";
  /** An SQLSTATE, or what the system said (`ECONNREFUSED`); undefined where neither is known. */
  readonly code: string | undefined;

  constructor(code: string | undefined, message: string) {
    super(message);
    this.code = code;
  }
}

interface Failure {
  readonly code?: string;
  readonly message: string;
  readonly hint?: string;
  /** Only an error that the server sent has one. */
  readonly severity?: string;
}

const UNREACHABLE: { readonly [code: string]: string } = {
  ECONNREFUSED: "nobody listens there",
  ENOENT: "there is no such socket",
  ENOTFOUND: "the name is not known",
  EAI_AGAIN: "the name could not be looked up",
  EHOSTUNREACH: "there is no way to it",
  ENETUNREACH: "there is no way to it",
  ETIMEDOUT: "it does not answer",
  ECONNRESET: "the connection was cut",
  EPIPE: "the connection was cut",
};

/** What to do about an error of the server, by SQLSTATE. */
const ADVICE: { readonly [code: string]: string } = {
  "08P01": "A pooler in between says so: check user, password and database of the dsn, and the pooler's own settings.",
  "28P01": "Check user and password of the dsn.",
  "28000": "Check the user of the dsn, and pg_hba.conf.",
  "3D000": "Create it (createdb), or check the dsn.",
  "42501": "Use a role that may create in this schema, or grant it: GRANT CREATE, USAGE ON SCHEMA … TO …",
  "25006": "This is a standby or a read-only session; use the primary.",
  "53300": "The server has no connection left.",
  "57P03": "The server is starting or stopping; try again.",
  "40P01": "It met a caller of the old functions half-way; try again.",
  "55P03": "Another transaction holds what is to be changed; try again when it has ended.",
};

/** Makes of whatever the driver threw something that a person can act on. */
export function explainFailure(error: unknown, { host = "localhost", port = 5432 }: ClientConfig): MigrateError {
  const { code, message, hint, severity } = error as Failure;
  if (severity !== undefined) {
    const advice = (code === undefined ? undefined : ADVICE[code]) ?? hint;
    return new MigrateError(code, `The database refused: ${message}.${advice === undefined ? "" : ` ${advice}`}`);
  }
  const reason = code === undefined ? undefined : UNREACHABLE[code];
  const place = host.startsWith("/") ? host : `${host}:${port}`;
  if (reason !== undefined) return new MigrateError(code, `Cannot reach the database at ${place}: ${reason}.`);
  if (message === "timeout expired") {
    return new MigrateError("ETIMEDOUT", `Cannot reach the database at ${place}: it does not answer.`);
  }
  return new MigrateError(code, `The connection to the database at ${place} failed: ${message}.`);
}
