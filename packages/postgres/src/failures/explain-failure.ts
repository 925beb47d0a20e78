import type { ClientConfig } from "pg";
import { placeOf } from "../connection/parse-dsn.ts";
import { type Asker, adviceOf, failureCode, knownFailure, type StoreProblem } from "./failure-table.ts";

/** The database could not be used. The message says why and what to do, and never contains the password. */
export class MigrateError extends Error {
  override readonly name = "MigrateError";
  /** An SQLSTATE, or a code of the operating system (`ECONNREFUSED`). Undefined: neither is known. */
  readonly code: string | undefined;
  /** What kind of failure it is. */
  readonly problem: StoreProblem;
  /** The failure may end by itself: the database is starting, or the host name is not known yet. */
  readonly isRetryable: boolean;
  /** The message without `fix`. */
  readonly what: string;
  /** What an operator can do about it. Undefined: not known. */
  readonly fix: string | undefined;

  constructor(code: string | undefined, what: string, fix?: string) {
    super(fix === undefined ? what : `${what} ${fix}`);
    const { problem, isRetryable } = knownFailure(code);
    this.code = code;
    this.problem = problem;
    this.isRetryable = isRetryable;
    this.what = what;
    this.fix = fix;
  }
}

interface Failure {
  readonly message: string;
  readonly hint?: string;
  /** Only an error that the server sent has one. */
  readonly severity?: string;
}

/** Turns an error of the driver into one that an operator can act on. */
export function explainFailure(error: unknown, address: ClientConfig, asker: Asker): MigrateError {
  const { message, hint, severity } = error as Failure;
  const code = failureCode(error);
  const known = knownFailure(code);
  const fix = adviceOf(known, asker) ?? hint;
  if (severity !== undefined) return new MigrateError(code, `The database refused: ${message}.`, fix);
  const place = placeOf(address);
  const failed = `The connection to the database at ${place} failed: ${message}.`;
  return new MigrateError(code, known.says ? `Cannot reach the database at ${place}: ${known.says}.` : failed, fix);
}
