/** All holders, with what each holds and waits for. A holder that has ended gives everything back. */
import { rmSync } from "node:fs";
import type { Changes, LeaseRecord, WaiterRecord } from "@slotkeeper/queue";
import type { ProcessIdentity } from "../store/journal/process-identity.ts";
import { Holder, type HolderAbout, type HolderCall } from "./holder.ts";

/** A lease or a wait, with its host. */
interface Held<R> {
  readonly host: string;
  readonly record: R;
}

interface Entry {
  readonly holder: Holder;
  readonly leases: Map<string, LeaseRecord>;
  readonly waits: Map<string, Held<WaiterRecord>>;
}

interface HoldersInit {
  readonly self: ProcessIdentity;
  release(token: string): void;
  cancel(wait: Held<WaiterRecord>): void;
}

/** A session begins with the id of its holder. */
export function sessionOf(holder: string, request: string): string {
  return `${holder}.${request}`;
}

function holderIdOf(session: string): string {
  return session.slice(0, session.indexOf("."));
}

export class Holders {
  readonly #init: HoldersInit;
  readonly #entries = new Map<string, Entry>();
  readonly #opening = new Map<string, Promise<Holder>>();

  constructor(init: HoldersInit) {
    this.#init = init;
  }

  get size(): number {
    return this.#entries.size + this.#opening.size;
  }

  /** The holder of a call. It is watched from its first call on. */
  async of(call: HolderCall): Promise<Holder> {
    const known = this.#entries.get(call.id)?.holder ?? this.#opening.get(call.id);
    if (known !== undefined) return known;
    const opening = Holder.of(call, this.#init.self).then((holder) => {
      this.#opening.delete(call.id);
      return this.#watch(holder);
    });
    this.#opening.set(call.id, opening);
    return opening;
  }

  /** A lease of an earlier keeper, with its holder. */
  restore(about: HolderAbout, lease: LeaseRecord): void {
    if (!this.#entries.has(about.id)) this.#watch(new Holder(about, this.#init.self));
    this.#entries.get(about.id)?.leases.set(lease.key, lease);
  }

  find(session: string): Holder | undefined {
    return this.#entries.get(holderIdOf(session))?.holder;
  }

  /** Follows a commit. */
  apply(host: string, { puts, dels }: Changes): void {
    for (const [kind, key] of dels) {
      if (kind === "waiter") this.#entries.get(holderIdOf(key))?.waits.delete(key);
      else if (kind === "lease") for (const { leases } of this.#entries.values()) leases.delete(key);
    }
    for (const record of puts) {
      if (record.kind === "waiter") this.#put(record.key, (entry) => entry.waits.set(record.key, { host, record }));
      else if (record.kind === "lease") this.#put(record.session, (entry) => entry.leases.set(record.key, record));
    }
  }

  /** What a holder got after it had ended is given back, too. */
  #put(session: string, put: (entry: Entry) => void): void {
    const entry = this.#entries.get(holderIdOf(session));
    if (entry !== undefined) {
      put(entry);
      return;
    }
    const late = { leases: new Map(), waits: new Map() } as unknown as Entry;
    put(late);
    setImmediate(() => this.#giveBack(late));
  }

  #watch(holder: Holder): Holder {
    const { id } = holder.about;
    const entry: Entry = { holder, leases: new Map(), waits: new Map() };
    this.#entries.set(id, entry);
    void holder.ended().then(() => {
      this.#entries.delete(id);
      rmSync(holder.about.socket, { force: true });
      this.#giveBack(entry);
    });
    return holder;
  }

  #giveBack({ leases, waits }: Entry): void {
    for (const token of leases.keys()) this.#init.release(token);
    for (const wait of waits.values()) this.#init.cancel(wait);
  }
}
