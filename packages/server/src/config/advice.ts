/**
 * Something about a set-up that a person should know: what was found, why it matters, and how to fix it. `serve` logs it as
 * one sentence at its start; `slotkeeper doctor` shows the parts. The texts name keys and never quote secrets.
 */
export interface Advice {
  readonly code: AdviceCode;
  /** A clause without a full stop. */
  readonly found: string;
  /** A clause without a full stop. */
  readonly why: string;
  /** Whole sentences. */
  readonly fix: string;
}

/** Every advice: the check of the doctor that it belongs to, and how bad it is. */
export const ADVICE = {
  OPEN_TO_EVERYONE: ["address", "problem"],
  NO_INTERNAL_TOKEN: ["address", "warning"],
  FEW_FILES: ["limits", "warning"],
  CONTROLLER_NOT_ENCRYPTED: ["configuration", "warning"],
  CONTROLLER_WITHOUT_TOKEN: ["configuration", "warning"],
  UNUSED_KEY: ["configuration", "warning"],
  ZERO_IS_DEFAULT: ["configuration", "warning"],
  SHORT_KEY: ["keys", "warning"],
  SHARED_KEY_NOT_ASKED: ["keys", "problem"],
  HEADER_RESERVED: ["keys", "problem"],
  HEADER_UNDERSCORE: ["keys", "warning"],
  KEY_TOO_LONG: ["keys", "problem"],
  SAME_KEY: ["keys", "warning"],
  LIMITS_CONFLICT: ["limits", "warning"],
} as const;

export type AdviceCode = keyof typeof ADVICE;
export const ADVICE_CODES = Object.keys(ADVICE) as readonly AdviceCode[];

/** The advice as one line for a log. */
export function sentenceOf({ found, why, fix }: Advice): string {
  return `${found}: ${why}. ${fix}`;
}

/** The advice in a list, or an empty list if it does not apply. */
export function adviceIf(isSo: boolean, code: AdviceCode, found: string, why: string, fix: string): Advice[] {
  return isSo ? [{ code, found, why, fix }] : [];
}

/** A limit that makes another one useless. */
export function conflictIf(isSo: boolean, found: string, why: string, fix: string): Advice[] {
  return adviceIf(isSo, "LIMITS_CONFLICT", found, why, fix);
}
