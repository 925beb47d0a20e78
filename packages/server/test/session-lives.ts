import type { Fixture } from "./service-fixture.ts";

/** What one process counted, and what its log tells of each session; both must say the same. */
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
 * Replays the log of a life, which must be at debug: every session that is created ends once, before it is created again.
 * A session is counted where its first call came. One that is adopted, or whose first call is repeated after its grant, may
 * only repeat what it had: it ends once at most.
 * A slot that was delivered may still be cancelled by its owner, which counts as cancelled and ends nothing a second time.
 */
export function accountOf({ logged, service }: Fixture): LifeAccount {
  const faults: string[] = [];
  const lives = new Map<string, "open" | "adopted" | "granted" | "over">();
  const told = { session_created: 0, granted: 0, timeout: 0, canceled: 0, throttled: 0 };
  let created = 0;
  let ended = 0;
  for (const line of logged) {
    const { msg, session, isAdopted } = JSON.parse(line) as { msg: string; session?: string; isAdopted?: boolean };
    if (session === undefined) continue;
    const life = lives.get(session);
    if (msg === "session created") {
      if (life === "open") faults.push(`${session} began while it lived`);
      const isRepeated = isAdopted === true || life === "granted";
      lives.set(session, isRepeated ? "adopted" : "open");
      if (!isRepeated) created++;
      if (isAdopted !== true) told.session_created++;
    } else if (ENDS.has(msg)) {
      if (msg in told) told[msg as keyof typeof told]++;
      if (life === "open") ended++;
      else if (life !== "adopted" && (life !== "granted" || msg !== "canceled"))
        faults.push(`${session} ended again: ${msg}`);
      lives.set(session, msg === "granted" ? "granted" : "over");
    }
  }
  const { counts, sessions } = service.dump();
  for (const name of COUNTED) {
    if (counts[name] !== told[name]) faults.push(`${counts[name]} counted as ${name}, ${told[name]} told`);
  }
  const open = [...lives.values()].filter((life) => life === "open").length;
  // A slot granted but not fetched is not an end yet.
  if (open > sessions.pending + sessions.granted) faults.push(`${open} never ended, ${sessions.pending} pending`);
  return { faults, created, ended, open };
}
