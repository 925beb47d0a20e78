import { STORE_PROBLEMS, type StoreProblem } from "@slotkeeper/postgres";
import { ADVICE, ADVICE_CODES, type Advice } from "../config/advice.ts";

/** From the best to the worst. */
export const SEVERITIES = ["ok", "warning", "problem"] as const;
/** How bad a finding is. */
export type Severity = (typeof SEVERITIES)[number];

/** The checks, in this order. */
export const CHECKS = [
  "configuration",
  "address",
  "service",
  "keys",
  "limits",
  "journal",
  "database",
  "schema",
  "permissions",
  "notifications",
  "clock",
  "instances",
] as const;
/** The name of a check of `diagnose`. */
export type Check = (typeof CHECKS)[number];

/** Every code that a finding can have. docs/reference/doctor.md explains them; a test compares the two. */
export const FINDING_CODES = [
  "OK",
  "CONFIG_INVALID",
  "CONTROLLER_UNREACHABLE",
  ...ADVICE_CODES,
  "SERVICE_NOT_READY",
  "KEY_NOT_SENT",
  "FLOORS_IGNORED",
  "PORT_IN_USE",
  "ADDRESS_UNUSABLE",
  "JOURNAL_DAMAGED",
  "JOURNAL_FORMAT",
  "JOURNAL_LOCKED",
  "JOURNAL_PATH",
  "JOURNAL_UNWRITABLE",
  ...(Object.keys(STORE_PROBLEMS) as StoreProblem[]),
  "SERVER_TOO_OLD",
  "COMMITS_NOT_DURABLE",
  "SCHEMA_MISSING",
  "SCHEMA_OLD",
  "SCHEMA_NEW",
  "SCHEMA_CHANGED",
  "PERMISSION_MISSING",
  "NOTIFICATIONS_LOST",
  "LISTEN_ELSEWHERE",
  "LISTEN_UNREACHABLE",
  "CLOCK_SKEW",
  "LIMITS_DRIFT",
  "VERSION_DRIFT",
  "LIMITS_NOT_LOADED",
] as const;
/** A stable code: `docs/reference/doctor.md` explains each. */
export type FindingCode = (typeof FINDING_CODES)[number];

/** The result of one check. All findings except `ok` say why it matters and how to fix it. */
export interface Finding {
  readonly check: Check;
  readonly severity: Severity;
  readonly code: FindingCode;
  readonly found: string;
  readonly why?: string;
  readonly fix?: string;
}

export function ok(check: Check, found: string): Finding {
  return { check, severity: "ok", code: "OK", found };
}

type Details = Pick<Required<Finding>, "code" | "found" | "why" | "fix">;

export function problem(check: Check, details: Details): Finding {
  return { check, severity: "problem", ...details };
}

export function warning(check: Check, details: Details): Finding {
  return { check, severity: "warning", ...details };
}

/** The finding in a list, or an empty list if it does not apply. */
export function warningIf(isSo: boolean, check: Check, details: Details): Finding[] {
  return isSo ? [warning(check, details)] : [];
}

export function problemIf(isSo: boolean, check: Check, details: Details): Finding[] {
  return isSo ? [problem(check, details)] : [];
}

export function findingOf({ code, found, why, fix }: Advice): Finding {
  const [check, severity] = ADVICE[code];
  return { check, severity, code, found: sentence(found), why: sentence(why), fix };
}

function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
}
