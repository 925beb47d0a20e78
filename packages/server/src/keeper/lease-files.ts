/**
 * The leases as files, so that they outlive the keeper. A machine that restarts begins without leases, so nothing has to
 * reach the disk: only other processes must see it.
 *
 * FILE1  A lease has its file before its grant is answered, and no longer when it has ended.
 * FILE2  A file appears complete, by a rename. One that cannot be read is left over from something else and is removed.
 */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LeaseRecord } from "@slotkeeper/queue";
import { checkedHolder, type HolderAbout, type HolderPlace } from "./holder.ts";

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

  /** The leases of this start of the machine. Removes all other files. */
  read(): KeptLease[] {
    const { folder, isOwnFile } = this.#place;
    return readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      if (!path.startsWith(this.#prefix) || !isOwnFile(name)) return [];
      const kept = parsed(path);
      const holder = kept?.boot === this.#boot && isLease(kept) ? checkedHolder(kept.holder, this.#place) : undefined;
      if (kept !== undefined && holder !== undefined) return [{ ...kept, holder }];
      rmSync(path, { force: true });
      return [];
    });
  }

  #pathOf({ session, fence }: LeaseRecord): string {
    const [holder = ""] = session.split(".");
    return `${this.#prefix}${holder.slice(0, 8)}${fence.toString(36)}`;
  }
}

function parsed(path: string): KeptLease | undefined {
  try {
    return path.endsWith(".new") ? undefined : (JSON.parse(readFileSync(path, "utf8")) as KeptLease);
  } catch {
    return undefined;
  }
}

/** A file of another version may have other fields. */
function isLease({ host, hostname, capacity, slot, lease }: Partial<KeptLease>): boolean {
  const { key, session, bucket, fence, grantedAt } = Object(lease) as Partial<LeaseRecord>;
  const texts = [host, hostname, key, session, bucket];
  const numbers = [capacity, slot, fence, grantedAt];
  return texts.every((text) => typeof text === "string") && numbers.every(Number.isFinite);
}
