import type { ClientConfig } from "pg";
import { type Asker, failureCode, type KnownFailure, knownFailure, type StoreProblem } from "./failure-table.ts";

/** The database could not be used. The message says why and what to do, and never holds the password. */
export class MigrateError extends Error {
  override readonly name = "MigrateError";
  /** An SQLSTATE, or what the system said (`ECONNREFUSED`); undefined where neither is known. */
  readonly code: string | undefined;
  /** What kind of failure it is. */
  readonly problem: StoreProblem;
  /** It may pass by itself: the database starts, or the host name is unknown yet. */
  readonly isRetryable: boolean;

  constructor(code: string | undefined, message: string) {
    super(message);
    const { problem, isRetryable } = knownFailure(code);
    this.code = code;
    this.problem = problem;
    this.isRetryable = isRetryable;
  }
}

interface Failure {
  readonly message: string;
  readonly hint?: string;
  /** Only an error that the server sent has one. */
  readonly severity?: string;
}

/** Makes of whatever the driver threw something that a person can act on. */
export function explainFailure(error: unknown, address: ClientConfig, asker: Asker): MigrateError {
  const { message, hint, severity } = error as Failure;
  const code = failureCode(error);
  const known = knownFailure(code);
  if (severity !== undefined) {
    const advice = adviceFor(known, asker) ?? hint;
    return new MigrateError(code, `The database refused: ${message}.${advice === undefined ? "" : ` ${advice}`}`);
  }
  const { host = "localhost", port = 5432 } = address;
  const place = host.startsWith("/") ? host : `${host}:${port}`;
  if (known.says !== undefined) {
    return new MigrateError(code, `Cannot reach the database at ${place}: ${known.says}.`);
  }
  return new MigrateError(code, `The connection to the database at ${place} failed: ${message}.`);
}

function adviceFor({ advice }: KnownFailure, asker: Asker): string | undefined {
  return typeof advice === "object" ? advice[asker] : advice;
}
