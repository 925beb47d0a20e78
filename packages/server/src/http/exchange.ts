import { PROBLEMS, type ProblemCode } from "@slotkeeper/protocol";
import type { EventStream } from "../telemetry/live-hub.ts";
import type { FieldProblem, Validator } from "../words/validator.ts";

/** Headers of an answer, by name. */
export type Headers = { readonly [name: string]: string | number };
/** The body of a request. */
export type JsonObject = { readonly [key: string]: unknown };

/** Why a held call ends: its caller disconnected, or sent so much behind it that its connection is no longer read. */
export type Leaving = "left" | "crowded";

/**
 * One request and its answer, in plain values. Routes know nothing else of HTTP, so that they run in any runtime;
 * `NodeExchange` is the one for Node.
 */
export interface Exchange {
  /** The id in the `X-Request-Id` of the answer and in every log line about the request. */
  readonly id: string;
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The address of the caller, for the audit record. */
  readonly peer: string;
  /** Whether the caller is a person on this machine, and no other machine can reach the service. */
  readonly isLocal: boolean;
  /** The status of the answer; 0 if the caller left before it. */
  readonly status: number;
  /** The code of the problem document, if the answer was one. */
  readonly problemCode: ProblemCode | undefined;
  /** Whether the call could be held open now. */
  readonly leaving: Leaving | undefined;
  /** `name` is in lower case. */
  header(name: string): string | undefined;
  body(): Promise<Body>;
  onLeave(listener: (why: Leaving) => void): void;
  /** Adds a header to the answer, whatever it will be. */
  setHeader(name: string, value: string): void;
  json(body: object, headers?: Headers): void;
  problem(code: ProblemCode, detail?: string, more?: ProblemMore): void;
  send(status: number, type: string, body: string | Uint8Array, headers?: Headers): void;
  /** An answer without a body. */
  empty(status: 204 | 304, headers?: Headers): void;
  /** An answer that goes on; `undefined` if only its head was asked for. */
  stream(type: string, headers: Headers): EventStream | undefined;
  /** Answers that the service failed, or breaks the connection if an answer has begun. */
  fail(): void;
}

/** What a problem document may have beside its code and detail. */
export interface ProblemMore {
  readonly errors?: readonly FieldProblem[];
  readonly headers?: Headers;
  /** The machine-readable reason of a code that has several. */
  readonly reason?: string;
}

/** The answers that are the same in every runtime, made of `send`. */
export abstract class BaseExchange {
  abstract readonly id: string;
  problemCode: ProblemCode | undefined;

  abstract send(status: number, type: string, body: string | Uint8Array, headers?: Headers): void;

  json(body: object, headers?: Headers): void {
    this.send(200, "application/json", JSON.stringify(body), headers);
  }

  problem(code: ProblemCode, detail?: string, { errors, headers, reason }: ProblemMore = {}): void {
    const { status } = PROBLEMS[code];
    this.problemCode = code;
    this.send(status, PROBLEM_TYPE, problemBody(code, status, { reason, detail, errors }), headers);
  }
}

/** Prevents a browser from guessing another content type. */
export const NO_SNIFF = { "X-Content-Type-Options": "nosniff" } as const;

/** The media type of problem documents. */
export const PROBLEM_TYPE = "application/problem+json";

export function problemBody(code: ProblemCode, status: number, more?: object): string {
  const type = `urn:slotkeeper:problem:${code.toLowerCase().replaceAll("_", "-")}`;
  return JSON.stringify({ type, title: PROBLEMS[code].title, status, code, ...more });
}

/** What the body of a request turned out to be. */
export type Body =
  | { readonly kind: "object"; readonly value: JsonObject }
  | { readonly kind: "too-large"; readonly isDrained: boolean }
  | { readonly kind: "bad-json"; readonly detail: string };

/**
 * Reads the JSON of a body. `isUtf8` decides about a text with the character that bytes become if they are not UTF-8.
 * The message of the parser is not passed on: it quotes the body, which may contain a token.
 */
export function parseBody(text: string, isUtf8: () => boolean): Body {
  if (text.includes("\uFFFD") && !isUtf8()) return { kind: "bad-json", detail: "The body is not valid UTF-8" };
  let value: unknown;
  try {
    // Only if there may be one: a reviver makes parsing slower.
    value = text.includes("null") ? JSON.parse(text, withoutNull) : JSON.parse(text);
  } catch {
    return { kind: "bad-json", detail: text === "" ? "The body is empty" : "The body is not valid JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = value === undefined ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
    return { kind: "bad-json", detail: `Expected the body to be a JSON object, got ${kind}` };
  }
  return { kind: "object", value: value as JsonObject };
}

/** `null` counts as absent, also in a map like `cost`. */
function withoutNull(_key: string, value: unknown): unknown {
  return value ?? undefined;
}

/** The fields of a body; `undefined` if they are invalid, which is then answered. */
export function fieldsOf<T>(exchange: Exchange, body: JsonObject, validator: Validator<T>): T | undefined {
  const checked = validator.check(body);
  if ("value" in checked) return checked.value;
  return badFields(exchange, ...checked.problems);
}

/** Answers that these fields are invalid. */
export function badFields(exchange: Exchange, ...errors: readonly FieldProblem[]): undefined {
  exchange.problem("BAD_FIELDS", undefined, { errors });
}
