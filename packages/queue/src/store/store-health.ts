/** What an operator must know about a store. `Problem`: the codes of what can be wrong. */

/** Whether a grant could be stored now, and why not. Any caller may read `detail`; `error` is for the log. */
export type StoreHealth<Problem extends string = string> =
  | { readonly isReady: true }
  | { readonly isReady: false; readonly reason: Problem; readonly detail: string; readonly error: unknown };

/** Numbers of the store at this instance, for metrics: those that it has. Counts only grow. */
export interface StoreGauges {
  /** Its connections. */
  readonly pool?: {
    readonly size: number;
    readonly idle: number;
    /** Calls that wait for a connection now. */
    readonly waiting: number;
    /** Calls that had to wait for a connection, and for how long in total. */
    readonly waits: number;
    readonly waitedMs: number;
  };
  /** Calls that wait for earlier calls of their host. */
  readonly lanes?: { readonly waiting: number; readonly waits: number };
  /** Its connection for notifications. `isUp` is undefined until the first test of it. */
  readonly listener?: { readonly isUp: boolean | undefined; readonly losses: number };
}
