import type { Fixture } from "./service-fixture.ts";

/** What one process counted, and what its log reports about each session. Both must agree. */
export interface LifeAccount {
  readonly faults: readonly string[];
  readonly created: number;
  readonly ended: number;
  /** Sessions that had not ended when the process ended. Their callers continue elsewhere, by token. */
  readonly open: number;
}

const ENDS = new Set(["granted", "timeout", "canceled", "throttled"]);
const COUNTED = ["session_created", "granted", "timeout", "canceled", "throttled"] as const;

/**
 * `open`: begun here, and pending. `again`: pending again, after its slot was taken back. `left`: not ended when its
 * process was stopped.
 */
type Standing = "open" | "again" | "left" | "granted" | "over";

/** The state of each session, in this process and the earlier ones. */
export type Standings = Map<string, Standing>;

/**
 * Replays the log of one process, which must be at debug. Every session that is created ends once, before it is created
 * again.
 * A session is created where the commit of its arrival was made. A later process may end it, also with a slot. That may
 * be the first line about the session, if the process that committed the arrival was killed before it logged it.
 * A slot that the client did not take is returned, and its session may get another one.
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
  for (const [session, standing] of standings) if (isPending(standing)) standings.set(session, "left");
  for (const line of logged) {
    const { msg, session } = JSON.parse(line) as { msg: string; session?: string };
    if (session === undefined) continue;
    const standing = standings.get(session);
    if (msg === "session created") {
      if (isPending(standing)) faults.push(`${session} began while it lived`);
      loggedCounts.session_created++;
      standings.set(session, "open");
    } else if (msg === "returned") standings.set(session, "again");
    else if (ENDS.has(msg)) {
      loggedCounts[msg as keyof typeof loggedCounts]++;
      if (standing === "open") ended++;
      else if (standing !== "again" && !mayEnd(standing, msg, isLater)) faults.push(`${session} ended again: ${msg}`);
      standings.set(session, msg === "granted" ? msg : "over");
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
  return standing === "open" || standing === "again";
}

/**
 * A slot is released, even if another process granted it. Or a later process ends a session that was pending in an
 * earlier one, or that the earlier one had not logged yet.
 */
function mayEnd(standing: Standing | undefined, msg: string, isLater: boolean): boolean {
  return standing === "granted" ? msg === "canceled" : isLater && standing !== "over";
}
