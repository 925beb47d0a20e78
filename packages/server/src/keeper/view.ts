/** Who holds what and who waits, with processes, for `status --local` and for the line of a command that waits. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { type HostStore, type LeaseRecord, snapshotOf, type WaiterRecord } from "@slotkeeper/queue";
import type { Holder } from "./holder.ts";
import type { Holders } from "./holders.ts";
import type { KeptLeases } from "./kept-leases.ts";

/** One name of this machine. */
export interface LocalName {
  readonly name: string;
  readonly slots: number;
  readonly holders: readonly LocalHolder[];
  readonly waiters: readonly LocalUser[];
}

/** A command that holds a slot or waits for one. */
export interface LocalUser {
  readonly bucket: string;
  readonly pid: number;
  readonly command: string;
  /** How long it has held its slot, or waited. */
  readonly forMs: number;
}

/** A command that holds a slot. */
export interface LocalHolder extends LocalUser {
  readonly slot: number;
  /** The path of its socket, by which a command knows its own slot. */
  readonly socket: string;
  /** The command has ended. These processes, which it started, keep the slot. */
  readonly keptBy?: readonly number[];
}

/** The names in use, or only one. */
export async function localNames(
  { store, leases: kept, holders }: { store: HostStore; leases: KeptLeases; holders: Holders },
  now: number,
  only: string | undefined,
): Promise<LocalName[]> {
  const images = await store.peek(await store.hostKeys());
  const names: LocalName[] = [];
  for (const [host, image] of images) {
    const { hostname = host, slots, inFlight, waiting } = snapshotOf(host, image, now);
    if ((only !== undefined && hostname !== only) || inFlight + waiting === 0) continue;
    const leases = image.records.filter((record): record is LeaseRecord => record.kind === "lease");
    const waits = image.records.filter((record): record is WaiterRecord => record.kind === "waiter");
    const held = leases.map(async (lease) => {
      const holder = holders.find(lease.session);
      const keptBy = holder !== undefined && (await holder.isLeftBehind()) ? processesWith(holder) : undefined;
      const user = userOf(lease.bucket, holder, now - lease.grantedAt);
      return {
        ...user,
        slot: kept.slotOf(lease.key) ?? 0,
        socket: holder?.about.socket ?? "",
        ...(keptBy && { keptBy }),
      };
    });
    const waiters = waits
      .sort((a, b) => a.arrivedAt - b.arrivedAt)
      .map(({ key, bucket, arrivedAt }) => userOf(bucket, holders.find(key), now - arrivedAt));
    names.push({ name: hostname, slots, holders: (await Promise.all(held)).sort((a, b) => a.slot - b.slot), waiters });
  }
  return names.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function userOf(bucket: string, holder: Holder | undefined, forMs: number): LocalUser {
  const { pid = 0, command = "" } = holder?.about ?? {};
  return { bucket, pid, command, forMs: Math.max(0, Math.round(forMs)) };
}

/** The processes of this user that have the socket of the holder open. The system lists it under the name it was bound to. */
function processesWith({ about }: Holder): number[] {
  // Connections that no process has accepted are listed under the same name, too.
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  const named = lines.filter((text) => text.endsWith(` ${about.socket}.new`));
  const sockets = new Set(named.map((text) => `socket:[${text.trim().split(/\s+/)[6]}]`));
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => hasOpen(pid, sockets)).map(Number);
}

function hasOpen(pid: string, sockets: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(readlinkSync(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return false;
  }
}
