import type { Client } from "pg";

export interface TryAnswer {
  readonly status: "ACQUIRED" | "IP_TOO_MANY" | "QUEUE_FULL" | "THROTTLED";
  readonly slot_token: string | null;
  readonly queue_depth: number;
  readonly ip_queue_depth: number;
  readonly throttle_code: number | null;
  readonly throttle_retry_after: number | null;
}

export interface RegisterAnswer {
  readonly status: "REGISTERED" | "QUEUE_FULL" | "HOST_QUEUE_FULL";
  readonly queue_depth: number;
  readonly ip_queue_depth: number;
}

type Arguments = { readonly [name: string]: string | number | boolean | null };

const LOCK_TIMEOUT = "55P03";

/** Calls SQL functions as PostgREST does: by the names of their arguments. */
export class DirectCaller {
  readonly #client: Client;
  readonly #isPatient: boolean;

  /** `isPatient`: repeats a call that waited too long for the lock of its host, as happens on a busy machine. */
  constructor(client: Client, isPatient = false) {
    this.#client = client;
    this.#isPatient = isPatient;
  }

  async call<Row extends object>(name: string, given: Arguments): Promise<Row[]> {
    const names = Object.keys(given);
    const list = names.map((argument, at) => `${argument} => $${at + 1}`).join(", ");
    try {
      return (await this.#client.query<Row>(`SELECT * FROM ${name}(${list})`, Object.values(given))).rows;
    } catch (error) {
      if (this.#isPatient && (error as { code?: string }).code === LOCK_TIMEOUT) return this.call(name, given);
      throw error;
    }
  }

  async tryAcquire(host: string, bucket: string, more: Arguments = {}): Promise<TryAnswer> {
    const limits = { p_now_ms: 0, p_max_slot_per_host: 2, p_max_slot_per_ip: 1 };
    const given = { p_hostname_hash: null, p_hostname: host, p_ip_bucket: bucket, ...limits, ...more };
    return (await this.call<TryAnswer>("download_try_acquire_slot", given))[0] as TryAnswer;
  }

  /** Returns the token of an attempt that must succeed. */
  async acquire(host: string, bucket: string, more: Arguments = {}): Promise<string> {
    const { status, slot_token: token } = await this.tryAcquire(host, bucket, more);
    if (token === null) throw new Error(`expected a slot of ${host}, got ${status}`);
    return token;
  }

  async release(token: string, bucket = "b"): Promise<void> {
    const given = { p_hostname_hash: "", p_ip_bucket: bucket, p_slot_token: token, p_now_ms: 0 };
    await this.call("download_release_slot", given);
  }

  async register(host: string, bucket: string, more: Arguments = {}): Promise<RegisterAnswer> {
    const given = { p_hostname_hash: null, p_hostname: host, p_ip_bucket: bucket, ...more };
    return (await this.call<RegisterAnswer>("download_register_fq_waiter", given))[0] as RegisterAnswer;
  }

  async unregister(host: string, bucket: string): Promise<void> {
    await this.call("download_release_fq_waiter", { p_hostname: host, p_ip_bucket: bucket });
  }

  /** `func_try_acquire_slot`, with the same limits as `tryAcquire`. */
  async tryId(host: string, bucket: string, { slots = 2, perBucket = 1, cooldown = 0 } = {}): Promise<number> {
    const values = [host, bucket, slots, perBucket, 30, cooldown];
    const { rows } = await this.#client.query("SELECT func_try_acquire_slot($1, $2, $3, $4, $5, $6) AS id", values);
    return rows[0].id as number;
  }

  async releaseId(id: number, cools = true): Promise<void> {
    await this.#client.query("SELECT func_release_fair_slot($1, $2)", [id, cools]);
  }

  async report(host: string, isError: boolean, more: Arguments = {}): Promise<Record<string, unknown>> {
    const given = {
      p_hostname_hash: null,
      p_hostname: host,
      p_now: 0,
      p_is_error: isError,
      p_status_code: isError ? 503 : 200,
      p_throttle_time_window: 60,
      p_observe_window_seconds: 60,
      p_error_ratio_percent: 20,
      p_consecutive_threshold: 4,
      p_min_sample_count: 8,
      ...more,
    };
    const [row] = await this.call<Record<string, unknown>>("download_upsert_throttle_protection", given);
    return row as Record<string, unknown>;
  }

  async count(sql: string, values: readonly unknown[] = []): Promise<number> {
    const { rows } = await this.#client.query(`SELECT count(*)::int AS n FROM ${sql}`, [...values]);
    return rows[0].n as number;
  }
}
