import type * as Port from "@slotkeeper/queue";
import { SqlStore } from "../store/sql-store.ts";
import { ChangePoller } from "./change-poller.ts";
import { CALLS_AT_ONCE, PostgrestApi } from "./postgrest-api.ts";

/** Options of `PostgrestStore.open`. */
export interface PostgrestStoreOptions {
  /** The address of the PostgREST server. Functions are called at `{baseUrl}/rpc/{function}`. */
  readonly baseUrl: string;
  /** Sent as `Authorization`, for example `Bearer <JWT>`. */
  readonly authHeader?: string | undefined;
  /** One of PostgREST's `db-schemas`, sent as `Content-Profile`. Default: the first one. */
  readonly schema?: string | undefined;
  /** How long a call may take. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The store of a fleet whose instances use the database through PostgREST. It calls the same functions as
 * `PostgresStore`, so both may be used on one database at the same time. PostgREST cannot send notifications, so a
 * poller reads what others committed.
 *
 * @example
 * ```ts
 * import { PostgrestStore } from "@slotkeeper/postgres";
 *
 * const store = await PostgrestStore.open({ baseUrl: "http://127.0.0.1:3000", authHeader: "Bearer token" });
 * console.log(await store.totals());
 * await store.close();
 * ```
 */
export class PostgrestStore extends SqlStore {
  readonly #api: PostgrestApi;
  readonly #poller = new ChangePoller((host, since) => super.read(host, since));

  /**
   * Throws a `TypeError` for invalid options. Throws a `DatabaseError` if PostgREST does not answer, does not know the
   * functions, has a different version of them, or refuses the caller.
   */
  static async open(options: PostgrestStoreOptions): Promise<PostgrestStore> {
    const store = new PostgrestStore(new PostgrestApi(options));
    await store.instances();
    return store;
  }

  private constructor(api: PostgrestApi) {
    super(api, CALLS_AT_ONCE);
    this.#api = api;
  }

  override read(host: string, since: Port.Tag | undefined): Promise<Port.ReadReply> {
    return this.#poller.around(
      host,
      () => super.read(host, since),
      ({ tag }) => tag,
    );
  }

  override async commit(commit: Port.Commit): Promise<Port.CommitReply> {
    const kept = commit.changes.head === undefined ? undefined : commit.tag;
    const reply = await this.#poller.around(
      commit.host,
      () => super.commit(commit),
      (answer) => (answer.isOk ? kept : answer.tag),
    );
    if (reply.isOk) this.#poller.committed(commit);
    return reply;
  }

  override async beat(beat: Port.Beat): Promise<Port.BeatReply> {
    const reply = await super.beat(beat);
    this.#poller.beaten(beat, reply);
    return reply;
  }

  /**
   * Reports commits by polling, also those that do not name the instance in `wake`. The reports are hints, as in every
   * store.
   */
  override watch(instance: string, listener: (notice: Port.CommitNotice) => void): () => void {
    return this.#poller.watch(instance, listener);
  }

  /** Ends the polling and the connections. */
  async close(): Promise<void> {
    this.#poller.close();
    this.#api.close();
  }
}
