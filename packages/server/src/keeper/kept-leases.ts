import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { basename, join } from "node:path";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import {
  type Changes,
  type Commit,
  type KeptHost,
  type LeaseRecord,
  newHead,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { checkedHolder, type HolderAbout, type HolderPlace } from "./holder.ts";

interface Kept {
  readonly host: string;
  readonly slot: number;
  readonly lease: LeaseRecord;
  /** Whether the holder has said that it uses the slot, or can no longer do so. Undefined: neither yet. */
  use?: "confirmed" | "taken back";
}

/**
 * The leases with their files and the numbers of their slots. Each lease gets its file before its commit is accepted, and
 * loses it when it ends. If a file cannot be written, the commit fails, and the engine repeats it.
 *
 * KEPT1  A lease is confirmed or taken back, and never both: a command that starts only after `confirm` never runs on a
 *     slot that was taken back.
 */
export class KeptLeases {
  readonly #files: LeaseFiles;
  readonly #holderOf: (session: string) => HolderAbout | undefined;
  readonly #kept = new Map<string, Kept>();
  readonly #onEnd = new Map<string, () => void>();
  /** Why the last lease could not be written. */
  failure: unknown;

  /** `leases` are those of the earlier keeper. */
  constructor(files: LeaseFiles, leases: readonly KeptLease[], holderOf: (session: string) => HolderAbout | undefined) {
    this.#files = files;
    this.#holderOf = holderOf;
    for (const { host, slot, lease } of leases) this.#kept.set(lease.key, { host, slot, lease });
  }

  /** The number of the slot, from 1; `undefined` if the token holds none. */
  slotOf(token: string): number | undefined {
    return this.#kept.get(token)?.slot;
  }

  /** The holder uses the slot. Returns false if it must not, because the slot has ended or was taken back. */
  confirm(token: string): boolean {
    const kept = this.#kept.get(token);
    if (kept === undefined || kept.use === "taken back") return false;
    kept.use = "confirmed";
    return true;
  }

  /** The caller must release the slot. Returns false if it must not, because the holder uses it. */
  takeBack(token: string): boolean {
    const kept = this.#kept.get(token);
    if (kept === undefined || kept.use === "confirmed") return false;
    kept.use = "taken back";
    return true;
  }

  /** Calls `onEnd` when the lease ends, for example because a person revoked it. */
  whenEnded(token: string, onEnd: () => void): void {
    this.#onEnd.set(token, onEnd);
  }

  /** Throws if a file cannot be written. */
  readonly keep = ({ host, changes }: Commit): void => {
    try {
      this.#keep(host, changes);
      this.failure = undefined;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  };

  /** Ends come first: a lease that its holder has released must not count again because this process was killed here. */
  #keep(host: string, { head, puts, dels }: Changes): void {
    for (const [kind, key] of dels) {
      const kept = kind === "lease" ? this.#kept.get(key) : undefined;
      if (kept === undefined) continue;
      this.#files.remove(kept.lease);
      this.#kept.delete(key);
      this.#onEnd.get(key)?.();
      this.#onEnd.delete(key);
    }
    for (const lease of puts) {
      if (lease.kind !== "lease" || this.#kept.has(lease.key) || head === undefined) continue;
      const slot = this.#freeSlot(host);
      const holder = this.#holderOf(lease.session);
      const { hostname = "", slots: capacity } = head;
      // A holder that has ended since needs no file: its lease is given back at once.
      if (holder !== undefined) this.#files.write({ host, hostname, capacity, slot, lease, holder });
      this.#kept.set(lease.key, { host, slot, lease });
    }
  }

  #freeSlot(host: string): number {
    const used = new Set(Array.from(this.#kept.values(), (kept) => (kept.host === host ? kept.slot : 0)));
    let slot = 1;
    while (used.has(slot)) slot++;
    return slot;
  }
}

/** The hosts of these leases, for a store that starts with them. */
export function hostsOf(leases: readonly KeptLease[], now: number, config: FairQueueConfig): KeptHost[] {
  const byHost = new Map<string, KeptLease[]>();
  for (const kept of leases) byHost.set(kept.host, [...(byHost.get(kept.host) ?? []), kept]);
  return Array.from(byHost, ([host, kept]) => ({ host, tag: "1.restored", ...imageOf(kept, now, config) }));
}

function imageOf(kept: readonly KeptLease[], now: number, config: FairQueueConfig): Pick<KeptHost, "head" | "records"> {
  const { hostname = "", capacity = 1 } = kept[0] ?? {};
  const leases = kept.map(({ lease }) => ({ ...lease, grantedAt: Math.min(lease.grantedAt, now) }));
  const { policy } = resolveHost(resolveOptions(config), hostname);
  return {
    head: { ...newHead(now, Math.max(...leases.map(({ fence }) => fence))), hostname, slots: capacity, capacity },
    // A host without limits counts as unknown.
    records: [{ kind: "limits", key: "", policy, loadedAt: now, hostname }, ...leases],
  };
}

/**
 * The leases as files, so that they outlive the keeper. A machine that restarts begins without leases, so nothing has to
 * reach the disk: only other processes must see it.
 *
 * FILE1  A lease has its file before its grant is answered, and no longer when it has ended.
 * FILE2  A file appears complete, by a rename, and never changes. So one that cannot be read was damaged, and its slot may
 *     be in use: no keeper starts with it. After a restart of the machine all slots are free, and the files are removed.
 */

/** A lease with all that the next keeper needs. */
export interface KeptLease {
  readonly boot: string;
  readonly host: string;
  readonly hostname: string;
  readonly capacity: number;
  /** The number that the holder sees: 1 to `capacity`. */
  readonly slot: number;
  readonly lease: LeaseRecord;
  readonly holder: HolderAbout;
}

export class LeaseFiles {
  /** What the paths of the files begin with. */
  readonly #prefix: string;
  readonly #boot: string;
  readonly #place: HolderPlace;

  constructor(prefix: string, boot: string, place: HolderPlace) {
    this.#prefix = prefix;
    this.#place = place;
    this.#boot = boot;
  }

  write(kept: Omit<KeptLease, "boot">): void {
    const path = this.#pathOf(kept.lease);
    try {
      writeFileSync(`${path}.new`, JSON.stringify({ boot: this.#boot, ...kept }), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch (error) {
      rmSync(`${path}.new`, { force: true });
      throw error;
    }
  }

  remove(lease: LeaseRecord): void {
    rmSync(this.#pathOf(lease), { force: true });
  }

  /** The leases of this start of the machine. Removes the files of earlier ones. Throws if a file is damaged (FILE2). */
  read(): KeptLease[] {
    const { folder, isOwnFile } = this.#place;
    return readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      if (!path.startsWith(this.#prefix) || !isOwnFile(name)) return [];
      const kept = path.endsWith(".new") ? undefined : this.#readOne(path);
      if (kept === undefined) rmSync(path, { force: true });
      return kept ?? [];
    });
  }

  /** Undefined: it is of an earlier start of the machine. */
  #readOne(path: string): KeptLease | undefined {
    const kept = parsed(path);
    const isEarlier = typeof kept.boot === "string" ? kept.boot !== this.#boot : isOlderThanStart(path);
    if (isEarlier) return undefined;
    const holder = isLease(kept) ? checkedHolder(kept.holder, this.#place) : undefined;
    if (isLease(kept) && holder !== undefined) return { ...kept, holder };
    const then = "End its command, or wait for its end, and then delete the file";
    throw new Error(`the file ${basename(path)} of a lease is damaged, and its slot may be in use. ${then}`);
  }

  #pathOf({ session, fence }: LeaseRecord): string {
    const [holder = ""] = session.split(".");
    return `${this.#prefix}${holder.slice(0, 8)}${fence.toString(36)}`;
  }
}

function parsed(path: string): Partial<KeptLease> {
  try {
    return Object(JSON.parse(readFileSync(path, "utf8"))) as Partial<KeptLease>;
  } catch {
    return {};
  }
}

/** A crash of the machine may leave an empty file, because nothing had to reach the disk. */
function isOlderThanStart(path: string): boolean {
  return statSync(path).mtimeMs < Date.now() - uptime() * 1000;
}

/** A file of another version may have other fields. */
function isLease(kept: Partial<KeptLease>): kept is KeptLease {
  const { boot, host, hostname, capacity, slot, lease } = kept;
  const { key, session, bucket, fence, grantedAt } = Object(lease) as Partial<LeaseRecord>;
  const texts = [boot, host, hostname, key, session, bucket];
  const numbers = [capacity, slot, fence, grantedAt];
  return texts.every((text) => typeof text === "string") && numbers.every(Number.isFinite);
}
