import { type Amounts, type Call, hostKey } from "./call.ts";
import {
  CALL_NAMES,
  type CallLine,
  type CallName,
  FAULT_KINDS,
  type FactsLine,
  type FaultLine,
  type UseLine,
} from "./line.ts";

/** The lines of a history by kind. */
export interface Lines {
  readonly calls: Call[];
  readonly facts: (FactsLine & { readonly line: number })[];
  readonly faults: (FaultLine & { readonly line: number })[];
  readonly uses: (UseLine & { readonly line: number })[];
  /** The names under which callers named hosts, by key. */
  readonly names: Map<string, string>;
  /** The last time that the history mentions. */
  endsAt: number;
}

/** A line that is no line of a history. */
export class HistoryFormatError extends Error {
  override readonly name = "HistoryFormatError";
}

type Fields = { readonly [field: string]: unknown };

/** Collects the lines of a history, given as text or as objects. */
export class HistoryReader {
  readonly lines: Lines = { calls: [], facts: [], faults: [], uses: [], names: new Map(), endsAt: 0 };
  #line = 0;

  add(line: string | object): void {
    this.#line++;
    if (typeof line === "string" && line.trim() === "") return;
    const fields = typeof line === "string" ? this.#parsed(line) : (line as Fields);
    const { kind } = fields;
    const { lines } = this;
    if (kind === "call") lines.calls.push(this.#call(fields));
    else if (kind === "facts")
      lines.facts.push({ ...(this.#checked(fields, ["at"]) as unknown as FactsLine), line: this.#line });
    else if (kind === "fault") lines.faults.push(this.#fault(fields));
    else if (kind === "use")
      lines.uses.push({ ...(this.#checked(fields, ["from"]) as unknown as UseLine), line: this.#line });
    else this.#refuse("kind", "one of facts, fault, call, use", kind);
  }

  #parsed(text: string): Fields {
    try {
      return JSON.parse(text) as Fields;
    } catch (error) {
      throw new HistoryFormatError(`Line ${this.#line} is not JSON: ${(error as Error).message}`);
    }
  }

  #call(fields: Fields): Call {
    const { kind: _, call, sentAt, answeredAt, ...rest } = this.#checked(fields, ["sentAt"]) as unknown as CallLine;
    if (!CALL_NAMES.includes(call)) this.#refuse("call", `one of ${CALL_NAMES.join(", ")}`, call);
    const { hostname, hostnameHash, host: named, ...ask } = this.#object(fields, "ask");
    const answer = answeredAt === undefined ? {} : this.#object({ answer: {}, ...fields }, "answer");
    const host = hostKey(text(hostname) ?? text(named), text(hostnameHash));
    const name = text(hostname) ?? text(named);
    if (host !== undefined && name !== undefined && !this.lines.names.has(host)) this.lines.names.set(host, name);
    this.lines.endsAt = Math.max(this.lines.endsAt, sentAt, answeredAt ?? sentAt);
    return {
      line: this.#line,
      client: rest.client ?? "",
      name: call,
      sentAt,
      answeredAt: answeredAt ?? Number.POSITIVE_INFINITY,
      gaveUpAt: rest.gaveUpAt ?? Number.POSITIVE_INFINITY,
      host,
      bucket: text(ask["ipBucket"]) ?? text(ask["bucket"]) ?? "",
      requestId: text(ask["requestId"]),
      waitMs: number(ask["waitMs"]) ?? 0,
      width: number(answer["width"]) ?? number(ask["width"]) ?? 1,
      cost: amounts(ask["cost"]),
      charged: amounts(answer["charged"]),
      used: amounts(ask["used"]),
      keys: texts(ask["keys"]),
      class: text(ask["class"]) ?? "default",
      maxWaitMs: number(ask["maxWaitMs"]),
      token: text(ask[NAMED_BY[call] ?? "queryToken"]),
      reported: number(ask["status"]),
      hitAgeMs: hitAge(number(ask["hitUpstreamAtMs"]), number(ask["now"])),
      openMs: inMs(number(ask["throttleTimeWindowSeconds"])),
      set: call === "limits" || call === "breaker" ? ask : {},
      httpStatus: answeredAt === undefined ? undefined : (rest.status ?? 200),
      result: text(answer["result"]),
      queryToken: text(answer["queryToken"]),
      slotToken: text(answer["slotToken"]),
      fence: number(answer["fence"]) ?? Number.NaN,
      leaseMs: number(answer["leaseMs"]) ?? Number.NaN,
      limit: number(answer["limit"]),
      retryAfterMs: inMs(number(answer["throttleRetryAfter"])),
      reason: text(answer["reason"]),
      blockedBy: text(answer["blockedBy"]),
    };
  }

  #fault(fields: Fields) {
    const fault = this.#checked(fields, ["from"]) as unknown as FaultLine;
    if (!FAULT_KINDS.includes(fault.fault)) this.#refuse("fault", `one of ${FAULT_KINDS.join(", ")}`, fault.fault);
    return { ...fault, line: this.#line };
  }

  /** Checks the times: the given ones must be there, and all must be numbers. */
  #checked(fields: Fields, required: readonly string[]): Fields {
    for (const field of TIMES) {
      const value = fields[field];
      if (value === undefined && !required.includes(field)) continue;
      if (!Number.isFinite(value)) this.#refuse(field, "a number of milliseconds", value);
    }
    return fields;
  }

  #object(fields: Fields, field: string): Fields {
    const value = fields[field];
    if (typeof value !== "object" || value === null) return this.#refuse(field, "an object", value);
    return value as Fields;
  }

  #refuse(field: string, expected: string, value: unknown): never {
    const got = JSON.stringify(value) ?? "nothing";
    throw new HistoryFormatError(`Expected \`${field}\` of line ${this.#line} to be ${expected}, got ${got}`);
  }
}

/** The field that names what a call is about; other calls continue a session. */
const NAMED_BY: Partial<Record<CallName, string>> = { release: "slotToken", renew: "slotToken", revoke: "slot" };

const TIMES = ["at", "byAt", "from", "until", "sentAt", "answeredAt", "gaveUpAt"];

function texts(value: unknown): { readonly [name: string]: string } {
  const entries = Object.entries(Object(value)).filter(([, one]) => typeof one === "string");
  return Object.fromEntries(entries) as { readonly [name: string]: string };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function amounts(value: unknown): Amounts {
  const entries = Object.entries(Object(value) as Amounts).filter(([, amount]) => typeof amount === "number");
  return Object.fromEntries(entries);
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Without `now`, the time of the hit is one of an unknown clock: it may be any time. */
function hitAge(hitAt: number | undefined, now: number | undefined): number {
  if (hitAt === undefined) return Number.NaN;
  return now === undefined ? Number.POSITIVE_INFINITY : now - hitAt;
}
