import type * as Port from "@slotkeeper/queue";
import { STORE_PROBLEMS, type StoreProblem } from "../failures/failure-table.ts";
import { commitArguments } from "./commit-arguments.ts";
import { DatabaseError, isBrokenPromise } from "./database-error.ts";
import { decodeCommitReply, decodeReply, decodeRows } from "./decode.ts";
import { HostLanes, type HostRequest } from "./host-lanes.ts";

/** Arguments by name. Objects are sent as JSON, arrays as arrays. */
export type NamedArguments = { readonly [name: string]: unknown };

/** Calls the functions of a schema: through a connection, or through PostgREST. */
export interface FunctionCaller {
  /** Returns the result of the function; undefined or null for `void`. Rejects with a `DatabaseError`. */
  call(name: string, given: NamedArguments): Promise<unknown>;
}

/**
 * The number of the records and rules of this version. Every call contains it, and the database refuses a different
 * one: `SK001`. `slotkeeper_schema_number()` returns the same number.
 */
export const SCHEMA_NUMBER = 1;

/** Cleanup locks each host for a moment. A small batch keeps that to milliseconds. */
const HOSTS_AT_A_TIME = 50;

/** A request for one host. */
type Asked = HostRequest &
  (
    | { readonly kind: "read"; readonly since: Port.Tag | undefined }
    | { readonly kind: "commit"; readonly commit: Port.Commit }
  );
type Reply = Port.ReadReply | Port.CommitReply;

/** How long a failed commit counts. The engine repeats it every poll interval, so a commit that keeps failing stays recent. */
const FAILURE_COUNTS_MS = 2_000;

/**
 * Watches the results of commits. A separate check cannot find a full disk, or a rule that refuses some rows. Failures
 * that affect only one host do not count, and neither do failures with an unknown cause, which may come from the data
 * of one host.
 */
class CommitWatch {
  #failure: { readonly error: DatabaseError; readonly at: number } | undefined;

  get failure(): DatabaseError | undefined {
    const { error, at = 0 } = this.#failure ?? {};
    return performance.now() - at < FAILURE_COUNTS_MS ? error : undefined;
  }

  succeeded(): void {
    this.#failure = undefined;
  }

  failed(error: unknown): void {
    if (!(error instanceof DatabaseError) || error.isOfHost || error.problem === "STORE_FAILED") return;
    this.#failure = { error, at: performance.now() };
  }
}

/**
 * The store interface on the SQL functions of `sql/0004_store.sql`. Only this file knows their names and arguments. A
 * subclass defines how to call them, and how notifications arrive, if they do. Every call is one transaction and uses
 * the time of the database.
 */
export abstract class SqlStore implements Port.HostStore {
  readonly isShared = true;
  readonly #caller: FunctionCaller;
  readonly #lanes: HostLanes<Asked, Reply>;
  readonly #commits = new CommitWatch();

  /** `calls`: how many calls the caller can make at once. */
  protected constructor(caller: FunctionCaller, calls: number) {
    this.#caller = caller;
    this.#lanes = new HostLanes(calls, (asked) => this.#send(asked));
  }

  abstract watch(instance: string, listener: (notice: Port.CommitNotice) => void): () => void;

  async read(host: string, since: Port.Tag | undefined): Promise<Port.ReadReply> {
    return (await this.#lanes.run({ kind: "read", host, since, isShareable: false })) as Port.ReadReply;
  }

  async commit(commit: Port.Commit): Promise<Port.CommitReply> {
    try {
      const reply = await this.#lanes.run({ kind: "commit", host: commit.host, commit, isShareable: true });
      this.#commits.succeeded();
      return reply as Port.CommitReply;
    } catch (error) {
      this.#commits.failed(error);
      throw error;
    }
  }

  /** `isEchoed`: the database also notifies the instance itself. */
  async beat({ instance, ttlMs, about, hosts }: Port.Beat, isEchoed = false): Promise<Port.BeatReply> {
    const reply = await this.#call("slotkeeper_beat", {
      p_instance: instance,
      p_ttl_ms: ttlMs,
      p_about: about,
      p_hosts: hosts.map(([host]) => host),
      p_tags: hosts.map(([, tag]) => tag ?? null),
      p_echo: isEchoed,
    });
    return reply as Port.BeatReply;
  }

  async peek(hosts: readonly string[]): Promise<ReadonlyMap<string, Port.BookImage>> {
    const books = (await this.#call("slotkeeper_peek", { p_hosts: hosts })) as {
      readonly [host: string]: Port.BookImage;
    };
    return new Map(Object.entries(books).map(([host, book]) => [host, decodeRows(book)]));
  }

  async hostKeys(): Promise<readonly string[]> {
    return (await this.#call("slotkeeper_host_keys", {})) as string[];
  }

  async totals(): Promise<Port.StoreTotals> {
    const totals = (await this.#call("slotkeeper_totals", {})) as Port.StoreTotals;
    return { ...totals, slots: totals.slots ?? Number.POSITIVE_INFINITY };
  }

  async instances(): Promise<readonly Port.InstanceView[]> {
    return (await this.#call("slotkeeper_instances", {})) as Port.InstanceView[];
  }

  async cleanup({ idleMs }: Port.CleanupRequest): Promise<Port.CleanupReply> {
    const failures: unknown[] = [];
    let hosts = 0;
    await this.#call("slotkeeper_forget_rows", {}).catch((error: unknown) => failures.push(error));
    try {
      for (let after: string | null = ""; after !== null; ) {
        const given = { p_idle_ms: idleMs, p_after: after, p_count: HOSTS_AT_A_TIME };
        const reply = (await this.#call("slotkeeper_forget_hosts", given)) as { hosts: number; last: string | null };
        hosts += reply.hosts;
        after = reply.last;
      }
    } catch (error) {
      failures.push(error);
    }
    return { hosts, failures };
  }

  /** The keys that sign session tokens: those of the fleet, or `newKey` if the fleet has none. */
  async tokenKeys(newKey: string): Promise<readonly string[]> {
    return (await this.#call("slotkeeper_token_keys", { p_new_secret: newKey })) as string[];
  }

  /**
   * Whether a commit would succeed: the last ones did not fail, the database answers and can be written, and no right
   * is missing. Takes at most as long as a call. `echoes`: instances that the database notifies.
   */
  async health(echoes: readonly string[] = []): Promise<Port.StoreHealth<StoreProblem>> {
    const { failure } = this.#commits;
    if (failure !== undefined) return unhealthy(failure);
    try {
      await this.#call("slotkeeper_ready", { p_echoes: echoes });
      return { isReady: true };
    } catch (error) {
      return unhealthy(error);
    }
  }

  get gauges(): Port.StoreGauges {
    return { lanes: this.#lanes.counts };
  }

  async #read(host: string, since: Port.Tag | undefined): Promise<Port.ReadReply> {
    const given = { p_host: host, p_since: since ?? null };
    return decodeReply((await this.#call("slotkeeper_read", given)) as Port.ReadReply);
  }

  async #send(asked: readonly Asked[]): Promise<readonly Reply[]> {
    const [first] = asked as [Asked];
    if (asked.length > 1)
      return this.#commitAll(asked.flatMap((each) => (each.kind === "commit" ? [each.commit] : [])));
    return [first.kind === "read" ? await this.#read(first.host, first.since) : await this.#commit(first.commit)];
  }

  async #commit(commit: Port.Commit): Promise<Port.CommitReply> {
    try {
      return decodeCommitReply((await this.#call("slotkeeper_commit", commitArguments(commit))) as Port.CommitReply);
    } catch (error) {
      if (!isBrokenPromise(error)) throw error;
      // The error has rolled back everything and cannot return the state.
      return { isOk: false, reason: "slots", ...(await this.#read(commit.host, undefined)) };
    }
  }

  /** Commits of different hosts, in one transaction. */
  async #commitAll(commits: readonly Port.Commit[]): Promise<readonly Port.CommitReply[]> {
    const given = { p_commits: JSON.stringify(commits.map(commitArguments)) };
    return ((await this.#call("slotkeeper_commit_all", given)) as Port.CommitReply[]).map(decodeCommitReply);
  }

  #call(name: string, given: NamedArguments): Promise<unknown> {
    return this.#caller.call(name, { p_schema: SCHEMA_NUMBER, ...given });
  }
}

function unhealthy(error: unknown): Port.StoreHealth<StoreProblem> {
  const { problem, state } =
    error instanceof DatabaseError ? error : ({ problem: "STORE_FAILED", state: undefined } as const);
  const detail = `${STORE_PROBLEMS[problem]}${state === undefined ? "" : ` (${state})`}`;
  return { isReady: false, reason: problem, detail, error };
}
