import type { Fixture } from "./service-fixture.ts";

/** What one process counted, and what its log reports about each session. Both must agree. */
export interface LifeAccount {
  readonly faults: readonly string[];
  readonly created: number;
  readonly ended: number;
  /** Sessions that had not ended when the process ended. Their callers continue elsewhere, by token. */
  readonly open: number;
}

const ENDS = new Set(["granted", "timeout", "canceled", "throttled", "moved"]);
const COUNTED = ["session_created", "granted", "timeout", "canceled", "throttled"] as const;

/**
 * `open` and `adopted`: pending here. `left`: not ended when its process was stopped. `moved`: given up here; pending
 * or granted elsewhere, or continued by another copy here.
 */
type Standing = "open" | "adopted" | "left" | "moved" | "granted" | "over";

/** The state of each session, in this process and the earlier ones. */
export type Standings = Map<string, Standing>;

/**
 * Replays the log of one process, which must be at debug. Every session that is created ends once, before it is created
 * again.
 * A session is created where its first call arrives. Elsewhere and later it is adopted. There it may end if it has not
 * ended before; otherwise it only repeats its result, until it moves on.
 * A session that moved may be adopted again: if its client returns before the arrival of a timed-out copy was decided,
 * it gets another copy, and the first one moves.
 * A later process may also end a session without adopting it: its client cancels by token, the breaker opens, or its
 * deadline passes. That may be the first line about the session, if the process that issued the token was killed before
 * the store had the arrival.
 * A slot that was delivered may still be cancelled by its owner. That counts as cancelled, and is not a second end.
 */
export function accountOf(
  { logged, service }: Fixture,
  standings: Standings = new Map(),
  isLater = false,
): LifeAccount {
  const faults: string[] = [];
  const loggedCounts = { session_created: 0, granted: 0, timeout: 0, canceled: 0, throttled: 0 };
  let ended = 0;
  for (const [session, standing] of standings)
    if (isPending(standing) || standing === "moved") standings.set(session, "left");
  for (const line of logged) {
    const { msg, session, isAdopted } = JSON.parse(line) as { msg: string; session?: string; isAdopted?: boolean };
    if (session === undefined) continue;
    const standing = standings.get(session);
    if (msg === "session created") {
      if (isPending(standing)) faults.push(`${session} began while it lived`);
      if (isAdopted !== true) loggedCounts.session_created++;
      if (isAdopted !== true) standings.set(session, "open");
      else if (standing !== "granted" && standing !== "over") standings.set(session, "adopted");
    } else if (ENDS.has(msg) && (msg !== "moved" || isPending(standing))) {
      if (msg in loggedCounts) loggedCounts[msg as keyof typeof loggedCounts]++;
      if (standing === "open") ended++;
      else if (standing !== "adopted" && !mayEndUnadopted(standing, msg, isLater))
        faults.push(`${session} ended again: ${msg}`);
      standings.set(session, msg === "granted" || msg === "moved" ? msg : "over");
    }
  }
  const { counts, sessions, unsent } = service.dump();
  for (const name of COUNTED) {
    if (counts[name] !== loggedCounts[name])
      faults.push(`${counts[name]} counted as ${name}, ${loggedCounts[name]} logged`);
  }
  const open = [...standings.values()].filter((standing) => standing === "open").length;
  // A slot that was granted but not fetched is not an end yet. Neither is an end that the store did not get before its
  // process was killed: that session continues.
  if (open > sessions.pending + sessions.granted + unsent)
    faults.push(`${open} never ended, ${sessions.pending} pending, ${unsent} unsent`);
  return { faults, created: loggedCounts.session_created, ended, open };
}

function isPending(standing: Standing | undefined): boolean {
  return standing === "open" || standing === "adopted";
}

/**
 * A slot is released, even if another process granted it. Or a later process ends a session that was pending in an
 * earlier one, or that the earlier one had not logged yet.
 */
function mayEndUnadopted(standing: Standing | undefined, msg: string, isLater: boolean): boolean {
  if (standing === "granted" || standing === "moved") return msg === "canceled";
  return isLater && (standing === "left" || standing === undefined) && msg !== "granted" && msg !== "moved";
}
