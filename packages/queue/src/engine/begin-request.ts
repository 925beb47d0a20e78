import { type Demand, LIMITS, SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { CallSignal } from "./call.ts";

/** The first call of a session, for `FairQueue.begin`. A wrong field is a `TypeError`. */
export interface BeginRequest extends Demand {
  /** The host's key. */
  readonly host: string;
  readonly hostname?: string | undefined;
  readonly bucket?: string | undefined;
  /** Calls with the same id get the same session. */
  readonly requestId?: string | undefined;
  /**
   * An id for the session, chosen by the caller, so that every instance uses the same one. Calls with the same id get
   * the same session.
   */
  readonly sessionId?: string | undefined;
  /** How long the call waits for a slot. Without it, the call does not wait and is never `granted`. */
  readonly waitMs?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly throttleWindowMs?: number | undefined;
  /** The capacity of a named semaphore. */
  readonly limit?: number | undefined;
  readonly signal?: CallSignal | undefined;
}

/** Reports all wrong fields at once. For calls over HTTP, the schema has checked the fields before. */
export function checkRequest(request: BeginRequest): void {
  const {
    host,
    hostname,
    bucket,
    requestId,
    waitMs,
    maxWaitMs,
    throttleWindowMs,
    limit,
    width = 1,
    cost = {},
    keys = {},
    class: named = "",
  } = request;
  const wrong: [field: keyof BeginRequest, expected: string][] = [];
  if (!isText(host, hostnameLength) || host === "") wrong.push(["host", `a name of 1 to ${hostnameLength} characters`]);
  if (!isText(bucket ?? "", bucketLength)) wrong.push(["bucket", `a string of at most ${bucketLength} characters`]);
  if (!isText(requestId ?? "", requestIdLength))
    wrong.push(["requestId", `a string of at most ${requestIdLength} characters`]);
  if (!isDuration(waitMs)) wrong.push(["waitMs", "a number from 0 up"]);
  if (!isDuration(maxWaitMs)) wrong.push(["maxWaitMs", "a number from 0 up"]);
  if (!isDuration(throttleWindowMs)) wrong.push(["throttleWindowMs", "a number from 0 up"]);
  if (!Object.values(cost).every((amount) => Number.isFinite(amount) && amount >= 0))
    wrong.push(["cost", "an object of numbers from 0 up"]);
  if (!Object.values(keys).every((value) => isText(value, keyValueLength)))
    wrong.push(["keys", `an object of strings of at most ${keyValueLength} characters`]);
  if (!isText(named, classLength)) wrong.push(["class", `a string of at most ${classLength} characters`]);
  if (!isCapacity(width)) wrong.push(["width", "a whole number from 1 up"]);
  if (limit !== undefined && !(hostname?.startsWith(SEMAPHORE_PREFIX) === true && isCapacity(limit)))
    wrong.push(["limit", `a whole number from 1 up, for a host named "${SEMAPHORE_PREFIX}…"`]);
  if (wrong.length === 0) return;
  const problems = wrong.map(
    ([field, expected]) => `Expected \`${field}\` to be ${expected}, got ${JSON.stringify(request[field])}`,
  );
  throw new TypeError(problems.join("\n"));
}

const { hostnameLength, bucketLength, requestIdLength, keyValueLength, classLength } = LIMITS;

function isCapacity(limit: number): boolean {
  return Number.isInteger(limit) && limit >= 1;
}

function isDuration(value: number | undefined): boolean {
  return value === undefined || value >= 0;
}

/** Counts code points, as the schema of the HTTP contract does. */
function isText(value: unknown, most: number): boolean {
  return typeof value === "string" && (value.length <= most || Array.from(value).length <= most);
}
