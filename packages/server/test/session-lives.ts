import type { Fixture } from "./service-fixture.ts";

/** What one process counted, and what its log says of each session; both must agree. */
export interface LifeAccount {
  readonly faults: readonly string[];
  readonly created: number;
  readonly ended: number;
  /** Not ended when the process was: their callers go on elsewhere, by token. */
  readonly open: number;
}

const ENDS = new Set(["granted", "timeout", "canceled", "throttled", "moved"]);
const COUNTED = ["session_created", "granted", "timeout", "canceled", "throttled"] as const;

/**
 * `open` and `adopted`: pending here. `left`: pending when its process was stopped. `moved`: given up here, pending or granted
 * elsewhere, or as another copy here.
 */
type Standing = "open" | "adopted" | "left" | "moved" | "granted" | "over";

/** What became of each session, in this life and those before. */
export type Standings = Map<string, Standing>;

/**
 * Replays the log of a life, which must be at debug: every session that is created ends once, before it is created again.
 * A session is created where its first call came. Elsewhere and later it is adopted: it may end there if it has not ended
 * before, and otherwise only repeats what it had, until it has moved on. A session that moved may be adopted again: a client that
 * returns before the arrival of a copy that timed out was decided gets another copy, and the first one moves. A later life may also end it without adopting it: its client cancels
 * by token, the breaker opens, or its deadline passes. That may be the first line about it, where the life that gave out the token was cut
 * off before the store had its arrival.
 * A slot that was delivered may still be cancelled by its owner, which counts as cancelled and ends nothing a second time.
 */
export function accountOf(
  { logged, service }: Fixture,
  standings: Standings = new Map(),
  isLater = false,
): LifeAccount {
  const faults: string[] = [];
  const loggedCounts = { session_created: 0, granted: 0, timeout: 0, canceled: 0, throttled: 0 };
  let ended = 0;
  for (const [session, standing] of standings) if (isPending(standing)) standings.set(session, "left");
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
  // A slot granted but not fetched is not an end yet, nor is one that the store did not get before its process was cut off: there the
  // session goes on.
  if (open > sessions.pending + sessions.granted + unsent)
    faults.push(`${open} never ended, ${sessions.pending} pending, ${unsent} unsent`);
  return { faults, created: loggedCounts.session_created, ended, open };
}

function isPending(standing: Standing | undefined): boolean {
  return standing === "open" || standing === "adopted";
}

/**
 * A slot is given back, also one that another life answered; or a later life ends a session that was pending in an earlier one, or
 * that the earlier one had not logged yet.
 */
function mayEndUnadopted(standing: Standing | undefined, msg: string, isLater: boolean): boolean {
  if (standing === "granted" || standing === "moved") return msg === "canceled";
  return isLater && (standing === "left" || standing === undefined) && msg !== "granted" && msg !== "moved";
}
