import { demandOf, type FairQueueConfig } from "@slotkeeper/protocol";
import { type QueueOptions, resolveHost, resolveOptions } from "@slotkeeper/queue";
import type { DecideContext, Input } from "@slotkeeper/queue/internals";
import type { Host } from "@slotkeeper/testkit/reference";

/** What a request asks for. */
interface Asking {
  readonly class?: string;
  readonly bucket?: string;
  readonly width?: number;
  readonly cost?: { readonly [budget: string]: number };
  readonly keys?: { readonly [key: string]: string };
}

type Classes = { readonly classes?: NonNullable<FairQueueConfig["classes"]> };

/** One host on a fake clock, with decisions one after the other. All clients are present, and poll. */
export class ClassHost {
  readonly #host: Host;
  #config: FairQueueConfig;
  #options: QueueOptions;
  #loadedAt = 0;
  #sessions = 0;
  #secrets = 0;
  now = 1_000_000;
  /** The sessions that were granted, in the order of the grants. */
  readonly granted: string[] = [];
  readonly #asked = new Map<string, Asking>();

  constructor(host: Host, { classes, ...config }: FairQueueConfig & Classes) {
    this.#host = host;
    const hosts = classes === undefined ? {} : { "*": { classes } };
    this.#config = {
      hosts,
      maxSlotPerIp: -1,
      maxWaitMs: 1e9,
      maxHoldSeconds: 1e6,
      zombieTimeoutSeconds: 1e6,
      ...config,
    };
    this.#options = resolveOptions(this.#config);
  }

  /** Requests that arrive together. Returns their sessions. */
  async arrive(asking: Asking, count = 1): Promise<string[]> {
    const sessions = Array.from({ length: count }, () => `s${String(this.#sessions++).padStart(6, "0")}`);
    for (const session of sessions) this.#asked.set(session, asking);
    await this.decide(sessions.map((session) => this.#arrival(session, asking)));
    return sessions;
  }

  async release(...sessions: string[]): Promise<void> {
    const tokens = this.#host.tokens();
    const release = (session: string): Input => {
      return { kind: "release", slotToken: tokens.get(session) ?? "", hitAt: undefined, status: undefined };
    };
    await this.decide(sessions.map(release));
  }

  /** Another configuration is in force from the next decision on. */
  async configure({ classes, ...changed }: FairQueueConfig & Classes): Promise<void> {
    const hosts = classes === undefined ? {} : { "*": { classes } };
    this.#config = { ...this.#config, ...changed, hosts };
    this.#options = resolveOptions(this.#config);
    this.#loadedAt = ++this.now;
    await this.decide([]);
  }

  async decide(inputs: readonly Input[]): Promise<readonly { readonly kind: string }[]> {
    const { outcomes, notes } = await this.#host.decide(inputs, this.#context());
    const granted = notes.filter((note) => note.kind === "granted").sort((a, b) => a.fence - b.fence);
    this.granted.push(...granted.map(({ session }) => session));
    return outcomes;
  }

  /** The outcome of one request. */
  async ask(asking: Asking): Promise<{ readonly kind: string }> {
    const [outcome] = await this.decide([this.#arrival(`s${this.#sessions++}`, asking)]);
    return outcome as { readonly kind: string };
  }

  classOf(session: string): string {
    return this.#asked.get(session)?.class ?? "default";
  }

  bucketOf(session: string): string {
    return this.#asked.get(session)?.bucket ?? "";
  }

  /** The sessions with slots. */
  get holding(): string[] {
    return this.#host.view(this.now).leases.map(({ session }) => session);
  }

  get first(): string | undefined {
    return this.#host.view(this.now).first;
  }

  /** How each session ended. */
  get ends(): { readonly [session: string]: string } {
    return Object.fromEntries(this.#host.view(this.now).ends.map(({ session, end }) => [session, end]));
  }

  /** Slots by class. */
  get held(): { readonly [name: string]: number } {
    const held: { [name: string]: number } = {};
    for (const { session, width } of this.#host.view(this.now).leases) {
      const name = this.classOf(session);
      held[name] = (held[name] ?? 0) + width;
    }
    return held;
  }

  #arrival(session: string, { bucket = "", ...asking }: Asking): Input {
    const limits = resolveHost(this.#options, "h.test");
    return {
      kind: "arrive",
      session,
      bucket,
      weight: limits.weightOf(bucket),
      arrivedAt: this.now + this.#sessions / 65_536,
      deadlineAt: this.now + 1e9,
      openMs: 1_000,
      limit: undefined,
      isReturning: false,
      pendingAt: undefined,
      demand: demandOf(asking),
    };
  }

  #context(): DecideContext {
    const options = this.#options;
    const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = options;
    return {
      now: this.now,
      instance: "i0",
      limits: { policy: resolveHost(options, "h.test").policy, loadedAt: this.#loadedAt, hostname: "h.test" },
      isSemaphore: false,
      collectMs,
      cancelMs,
      pollIntervalMs,
      idleMs,
      mostEnds: 1_000,
      scheduler,
      newSecret: () => `${this.#secrets++}`,
      isPolledHere: () => true,
      awayHere: () => undefined,
      isTokenSent: () => true,
      isUndelivered: () => false,
      seenAt: () => this.now,
    };
  }
}
