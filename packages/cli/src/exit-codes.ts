/** What a script can tell from the exit code. `docs/guides/serve.md` and `client.md` have the same table. */
export const EXIT = {
  ok: 0,
  /** Something failed that is nobody's mistake here. */
  failed: 1,
  /** The command line makes no sense. */
  usage: 2,
  /** The configuration has problems; they were listed. */
  config: 3,
  /** The address cannot be listened on. */
  listen: 4,
  /** The database cannot be used: not reached, no right, or a schema of another version. */
  database: 5,
  /** No slot: the wait timed out, the host is paused, or the service takes no more waiters. */
  noSlot: 6,
  /** The service was not reached. */
  unreachable: 7,
  /** The service refused the call. */
  refused: 8,
  /** The slot was lost while the command ran. */
  lost: 9,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
