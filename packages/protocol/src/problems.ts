/** Every way a request can be refused: the code in the problem document, its HTTP status and its title. */
export const PROBLEMS = {
  BAD_REQUEST: { status: 400, title: "This is not an HTTP request the service can read" },
  BAD_JSON: { status: 400, title: "The body is not a JSON object" },
  BAD_FIELDS: { status: 400, title: "Some fields are not as expected" },
  BAD_TOKEN: { status: 400, title: "The query token's signature is wrong" },
  UNAUTHORIZED: { status: 401, title: "The shared key is missing or wrong" },
  FOREIGN_ORIGIN: { status: 403, title: "A page of another origin may not call this: see `cors.origins`" },
  NOT_FOUND: { status: 404, title: "There is nothing here" },
  METHOD_NOT_ALLOWED: { status: 405, title: "The path does not take this method" },
  CAPACITY_MISMATCH: { status: 409, title: "The semaphore is in use with another number of slots" },
  SLOT_LOST: { status: 410, title: "The lease is over" },
  BODY_TOO_LARGE: { status: 413, title: "The body is over 64 KiB" },
  INTERNAL: { status: 500, title: "The service failed" },
  BAD_CONFIG: { status: 502, title: "The new configuration was refused; the old one stays" },
  CONTROLLER_UNREACHABLE: { status: 502, title: "The control plane did not answer as it should" },
  UNAVAILABLE: { status: 503, title: "The store does not answer" },
  TOO_BUSY: { status: 503, title: "The service carries as much as it may: ask again" },
  NOT_READY: { status: 503, title: "Not ready" },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

/** The `code` of a refused request. */
export type ProblemCode = keyof typeof PROBLEMS;
