import { Semaphore } from "slotkeeper";
import { DatabaseError, isConflict } from "../store/database-error.ts";
import type { FunctionCaller, NamedArguments } from "../store/sql-store.ts";
import { parseBaseUrl } from "./base-url.ts";
import { failureOfFetch, failureOfReply, isCut, PostgrestFailure } from "./postgrest-failure.ts";
import type { PostgrestStoreOptions } from "./postgrest-store.ts";

const DEFAULTS = { timeoutMs: 5_000 } as const;

/**
 * After an outage every host makes a call at the same time. PostgREST queues the calls beyond its pool; this limits the
 * sockets.
 */
export const CALLS_AT_ONCE = 100;

/**
 * Calls the functions of a schema through PostgREST: `POST {baseUrl}/rpc/{function}` with the arguments as a JSON
 * object.
 *
 * POSTGREST1 A call is one request, which PostgREST runs in one transaction. `fetch` keeps connections alive.
 * POSTGREST2 A call whose connection was cut, or that lost against another transaction, is repeated once, immediately.
 *   Every function of the store may be repeated (P8).
 * POSTGREST3 A call without a reply is aborted after `timeoutMs`.
 * POSTGREST4 No error contains the Authorization header.
 */
export class PostgrestApi implements FunctionCaller {
  readonly #baseUrl: string;
  readonly #headers: Headers;
  readonly #timeoutMs: number;
  readonly #calls = new Semaphore(CALLS_AT_ONCE);
  readonly #open = new Set<AbortController>();

  /** Throws a `TypeError` for an invalid address or header. */
  constructor({ baseUrl, authHeader, schema, timeoutMs = DEFAULTS.timeoutMs }: PostgrestStoreOptions) {
    this.#baseUrl = parseBaseUrl(baseUrl);
    this.#headers = new Headers({ Accept: "application/json", "Content-Type": "application/json" });
    if (authHeader !== undefined) setHeader(this.#headers, "Authorization", authHeader, "authHeader");
    if (schema !== undefined) setHeader(this.#headers, "Content-Profile", schema, "schema");
    this.#timeoutMs = timeoutMs;
  }

  async call(name: string, given: NamedArguments): Promise<unknown> {
    const body = JSON.stringify(given);
    try {
      return await this.#request(name, body).catch((error: unknown) => {
        if (!(error instanceof PostgrestFailure) || !(isCut(error) || isConflict(error))) throw error;
        return this.#request(name, body);
      });
    } catch (error) {
      throw new DatabaseError(name, error);
    }
  }

  /** Aborts the calls in progress. */
  close(): void {
    for (const controller of this.#open) controller.abort(new PostgrestFailure("CLOSED", "The store was closed"));
  }

  #request(name: string, body: string): Promise<unknown> {
    return this.#calls.run(() => this.#send(name, body));
  }

  async #send(name: string, body: string): Promise<unknown> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#open.add(controller);
    const isLate = () => controller.abort(new PostgrestFailure("ETIMEDOUT", `No reply within ${this.#timeoutMs} ms`));
    const timer = setTimeout(isLate, this.#timeoutMs);
    try {
      const init = { method: "POST", headers: this.#headers, body, signal, redirect: "manual" } as const;
      const reply = await fetch(`${this.#baseUrl}/rpc/${name}`, init);
      return decode(reply, await reply.text());
    } catch (error) {
      if (error instanceof PostgrestFailure) throw error;
      throw signal.reason instanceof PostgrestFailure ? signal.reason : failureOfFetch(error);
    } finally {
      clearTimeout(timer);
      this.#open.delete(controller);
    }
  }
}

/** A function that returns `void` has a reply without a body. */
function decode({ status, ok, headers }: Response, text: string): unknown {
  if (!ok) throw failureOfReply(status, text, headers.get("location"));
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new PostgrestFailure(
      "NOT_JSON",
      `The reply has status ${status} and is not JSON: is this a PostgREST server?`,
    );
  }
}

/** The error message of the platform would contain the value. */
function setHeader(headers: Headers, header: string, value: string, option: string): void {
  try {
    headers.set(header, value);
  } catch {
    throw new TypeError(`Expected \`${option}\` to be text that an HTTP header can carry`);
  }
}
