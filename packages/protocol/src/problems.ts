/** Every way a request can be refused: the code in the problem document, its HTTP status and its title. */
export const PROBLEMS = {
  BAD_REQUEST: { status: 400, title: "The service cannot read this as an HTTP request" },
  BAD_JSON: { status: 400, title: "The body is not a JSON object" },
  BAD_FIELDS: { status: 400, title: "Some fields are invalid" },
  BAD_TOKEN: { status: 400, title: "The signature of the query token is invalid" },
  IMPOSSIBLE: { status: 400, title: "The limits of the host can never allow this request" },
  UNAUTHORIZED: { status: 401, title: "The shared key is missing or wrong" },
  FOREIGN_ORIGIN: { status: 403, title: "Web pages of this origin may not call the service: see `cors.origins`" },
  NOT_FOUND: { status: 404, title: "Not found" },
  METHOD_NOT_ALLOWED: { status: 405, title: "This path does not support the method" },
  CAPACITY_MISMATCH: { status: 409, title: "The semaphore is in use with another number of slots" },
  DEMAND_MISMATCH: { status: 409, title: "The session of this `requestId` has other demands" },
  SLOT_LOST: { status: 410, title: "The slot is no longer held: its lease has ended" },
  BODY_TOO_LARGE: { status: 413, title: "The body is larger than 64 KiB" },
  INTERNAL: { status: 500, title: "An internal error occurred" },
  BAD_CONFIG: { status: 502, title: "The new configuration is invalid; the service keeps the old one" },
  CONTROLLER_UNREACHABLE: { status: 502, title: "The control plane did not answer, or gave an unexpected answer" },
  UNAVAILABLE: { status: 503, title: "The store does not answer" },
  TOO_BUSY: { status: 503, title: "The service has reached one of its limits: try again later" },
  NOT_READY: { status: 503, title: "The service is not ready" },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

/** The `code` of a refused request. */
export type ProblemCode = keyof typeof PROBLEMS;
