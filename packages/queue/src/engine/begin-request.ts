import { LIMITS, SEMAPHORE_PREFIX } from "@slotkeeper/protocol";

export interface BeginRequest {
  /** The host's key. */
  readonly host: string;
  readonly hostname?: string | undefined;
  readonly bucket?: string | undefined;
  /** The same id gives the same session. */
  readonly requestId?: string | undefined;
  /** A name for the session chosen by the caller, so that every instance gives it the same. */
  readonly sessionId?: string | undefined;
  /** Above 0 the call waits so long, and may be granted at once. */
  readonly waitMs?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly throttleWindowMs?: number | undefined;
  /** Slots of a named semaphore. */
  readonly limit?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Misuse, all of it at once. What comes over a wire has been checked by its schema before it gets here. */
export function checkRequest(request: BeginRequest): void {
  const { host, hostname, bucket, requestId, waitMs, maxWaitMs, throttleWindowMs, limit } = request;
  const problems: string[] = [];
  const expect = (isRight: boolean, field: string, expected: string, got: unknown) => {
    if (!isRight) problems.push(`Expected \`${field}\` to be ${expected}, got ${JSON.stringify(got)}`);
  };
  const { hostnameLength, bucketLength, requestIdLength } = LIMITS;
  expect(isText(host, hostnameLength) && host.length > 0, "host", `a name of 1 to ${hostnameLength} characters`, host);
  expect(isText(bucket ?? "", bucketLength), "bucket", `a string of at most ${bucketLength} characters`, bucket);
  expect(
    isText(requestId ?? "", requestIdLength),
    "requestId",
    `a string of at most ${requestIdLength} characters`,
    requestId,
  );
  for (const [field, value] of Object.entries({ waitMs, maxWaitMs, throttleWindowMs })) {
    expect(value === undefined || value >= 0, field, "a number from 0 up", value);
  }
  const isSemaphore = hostname?.startsWith(SEMAPHORE_PREFIX) === true;
  const isLimit = limit === undefined || (isSemaphore && Number.isInteger(limit) && limit >= 1);
  expect(isLimit, "limit", `a whole number from 1 up, for a host named "${SEMAPHORE_PREFIX}…"`, limit);
  if (problems.length > 0) throw new TypeError(problems.join("\n"));
}

/** Characters as the wire's schema counts them: code points. */
function isText(value: unknown, most: number): boolean {
  return typeof value === "string" && (value.length <= most || Array.from(value).length <= most);
}
