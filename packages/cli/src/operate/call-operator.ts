import type { ServiceState } from "@slotkeeper/server";
import { callService, ServiceCallError } from "../call-service.ts";
import type { Flags } from "../commands/command.ts";
import type { ACTION_OPTIONS, NEW_OPTION } from "../commands/shared-options.ts";
import { KEY_HINTS, operatorHeaders } from "../service-flags.ts";

export type HostState = ServiceState["hosts"][number];

/** The flags of commands for operators. */
export type OperatorFlags = Flags<typeof ACTION_OPTIONS & typeof NEW_OPTION>;

/** Makes one call of the internal API. The path is without `/api/v0`. Throws as `callService`. */
export async function callOperator(flags: OperatorFlags, path: string, call: RequestInit = {}): Promise<unknown> {
  const headers = { ...operatorHeaders(flags["internal-token"]), "content-type": "application/json" };
  try {
    return await callService(flags.url, `/api/v0${path}`, { ...call, headers });
  } catch (error) {
    throw withKeyHint(error, "authorization" in headers);
  }
}

/** Without the token the service answers 404, as if it did not have the route, and says no more. */
function withKeyHint(error: unknown, hasToken: boolean): unknown {
  if (!(error instanceof ServiceCallError) || error.status !== 404 || error.isExplained) return error;
  const hint = hasToken ? KEY_HINTS.wrongInternalToken : KEY_HINTS.internalToken;
  return new ServiceCallError("REFUSED", `${error.message} ${hint}`, { cause: error });
}

/** The path of a host, for an action. */
export function hostPath(flags: OperatorFlags, host: string, below = ""): string {
  const query = new URLSearchParams({
    ...(flags["by-key"] === true && { by: "key" }),
    ...(flags.new === true && { new: "true" }),
  }).toString();
  return `/hosts/${encodeURIComponent(host)}${below}${query && `?${query}`}`;
}

/** A host as the service saw it at a time. */
export interface SeenHost {
  readonly at: number;
  /** `undefined` if the service does not know the host. */
  readonly state: HostState | undefined;
}

/** One host, with this number of its waiters. */
export async function seenHost(flags: OperatorFlags, host: string, waiters = 0): Promise<SeenHost> {
  const query = new URLSearchParams({
    host,
    sessions: String(waiters),
    ...(flags["by-key"] === true && { by: "key" }),
  }).toString();
  const { at, hosts } = (await callOperator(flags, `/state?${query}`)) as ServiceState;
  return { at, state: hosts[0] };
}

/** For a command that has nothing to do at a host that no caller has used. */
export function mustBeKnown({ state }: SeenHost, host: string): HostState {
  if (state !== undefined) return state;
  throw new ServiceCallError(
    "REFUSED",
    `The service knows no host ${JSON.stringify(host)}: no caller has used it lately.`,
  );
}
