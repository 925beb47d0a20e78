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

export const ADVICE_CODES = [
  "OPEN_TO_EVERYONE",
  "NO_INTERNAL_TOKEN",
  "FEW_FILES",
  "CONTROLLER_NOT_ENCRYPTED",
  "CONTROLLER_WITHOUT_TOKEN",
  "UNUSED_KEY",
  "ZERO_IS_DEFAULT",
  "SHORT_KEY",
  "SHARED_KEY_NOT_ASKED",
  "HEADER_RESERVED",
  "HEADER_UNDERSCORE",
  "KEY_TOO_LONG",
  "SAME_KEY",
  "LIMITS_CONFLICT",
] as const;

export type AdviceCode = (typeof ADVICE_CODES)[number];

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
