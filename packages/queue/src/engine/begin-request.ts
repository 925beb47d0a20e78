import { LIMITS, SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import type { CallSignal } from "./poll.ts";

export interface BeginRequest {
  /** The host's key. */
  readonly host: string;
  readonly hostname?: string | undefined;
  readonly bucket?: string | undefined;
  /** The same id gives the same session. */
  readonly requestId?: string | undefined;
  /** A name for the session chosen by the caller, so that every instance gives it the same. The same name is the same session. */
  readonly sessionId?: string | undefined;
  /** Above 0 the call waits so long, and may be granted at once. */
  readonly waitMs?: number | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly throttleWindowMs?: number | undefined;
  /** Slots of a named semaphore. */
  readonly limit?: number | undefined;
  readonly signal?: CallSignal | undefined;
}

/** Misuse, all of it at once. What comes over a wire has been checked by its schema before it gets here. */
export function checkRequest(request: BeginRequest): void {
  if (RULES.every(({ holds }) => holds(request))) return;
  const broken = RULES.filter(({ holds }) => !holds(request));
  const problems = broken.map(
    ({ field, means }) => `Expected \`${field}\` to be ${means}, got ${JSON.stringify(request[field])}`,
  );
  throw new TypeError(problems.join("\n"));
}

interface Rule {
  readonly field: keyof BeginRequest;
  readonly means: string;
  readonly holds: (request: BeginRequest) => boolean;
}

const { hostnameLength, bucketLength, requestIdLength } = LIMITS;

const RULES: readonly Rule[] = [
  {
    field: "host",
    means: `a name of 1 to ${hostnameLength} characters`,
    holds: ({ host }) => isText(host, hostnameLength) && host.length > 0,
  },
  {
    field: "bucket",
    means: `a string of at most ${bucketLength} characters`,
    holds: ({ bucket }) => isText(bucket ?? "", bucketLength),
  },
  {
    field: "requestId",
    means: `a string of at most ${requestIdLength} characters`,
    holds: ({ requestId }) => isText(requestId ?? "", requestIdLength),
  },
  { field: "waitMs", means: "a number from 0 up", holds: ({ waitMs }) => isDuration(waitMs) },
  { field: "maxWaitMs", means: "a number from 0 up", holds: ({ maxWaitMs }) => isDuration(maxWaitMs) },
  {
    field: "throttleWindowMs",
    means: "a number from 0 up",
    holds: ({ throttleWindowMs }) => isDuration(throttleWindowMs),
  },
  {
    field: "limit",
    means: `a whole number from 1 up, for a host named "${SEMAPHORE_PREFIX}…"`,
    holds: ({ limit, hostname }) =>
      limit === undefined || (hostname?.startsWith(SEMAPHORE_PREFIX) === true && Number.isInteger(limit) && limit >= 1),
  },
];

function isDuration(value: number | undefined): boolean {
  return value === undefined || value >= 0;
}

/** Characters as the wire's schema counts them: code points. */
function isText(value: unknown, most: number): boolean {
  return typeof value === "string" && (value.length <= most || Array.from(value).length <= most);
}
