import type { HostPolicy } from "../host-policy.ts";
import type { ReleaseReply } from "../store/slot-store.ts";
import type { EngineContext } from "./context.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Hosts } from "./hosts.ts";
import type { Sessions } from "./sessions.ts";

export interface ReleaseInput {
  readonly slotToken: string;
  readonly host?: string | undefined;
  readonly hostname?: string | undefined;
  /** When the upstream was hit, by the caller's clock. */
  readonly hitUpstreamAtMs?: number | undefined;
  /** The caller's clock now: with it a wrong clock does no harm. */
  readonly callerNow?: number | undefined;
  /** The upstream's answer, for the breaker. */
  readonly status?: number | undefined;
}

/** Brings slots back, whatever becomes of the caller's connection. */
export class Releases {
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #hosts: Hosts;

  constructor(engine: EngineContext, sessions: Sessions, hosts: Hosts) {
    this.#engine = engine;
    this.#sessions = sessions;
    this.#hosts = hosts;
  }

  release(input: ReleaseInput): Promise<ReleaseReply | undefined> {
    const { slotToken, host: key, status } = input;
    const { clock, store, outbox } = this.#engine;
    const session = this.#sessions.findToken(slotToken);
    const host =
      session?.host ?? (key === undefined ? undefined : this.#hosts.hostOf({ host: key, hostname: input.hostname }));
    if (session !== undefined) this.#sessions.setLease(session, 0);
    const policy = host?.policy;
    const hitAt = hitAtOf(input, clock.now(), policy);
    let reply: ReleaseReply | undefined;
    let isTold = false;
    return new Promise((resolve) => {
      outbox.post({
        operation: "release",
        host: host?.key,
        giveUpAt: clock.now() + (policy?.leaseMs ?? DEFAULT_LEASE_MS),
        send: async () => {
          const hitAgoMs = hitAt === undefined ? undefined : clock.now() - hitAt;
          const { freedTold } = this.#hosts;
          const asked = store.release({
            slotToken,
            host: host?.key,
            policy,
            hitAgoMs,
            status,
            uncollectedBy: undefined,
          });
          isTold = this.#hosts.freedTold !== freedTold;
          reply = await (isTold ? asked : this.#onItsWay(asked, host));
        },
        done: () => {
          if (reply?.isReleased === true) {
            if (session !== undefined) this.#sessions.forget(session);
            this.#freed(reply, isTold);
          } else if (reply !== undefined) this.#engine.emit({ type: "late-release", host: host?.key });
          // The answer may have closed the breaker for those who wait.
          if (status !== undefined && host?.breaker.phase === "open") this.#engine.wake(host);
          resolve(reply);
        },
      });
    });
  }

  async #onItsWay(asked: Promise<ReleaseReply>, host: HostQueue | undefined): Promise<ReleaseReply> {
    if (host !== undefined) host.releasing++;
    try {
      return await asked;
    } finally {
      if (host !== undefined) host.releasing--;
    }
  }

  /** `isTold`: the store has said so itself, in the midst of the call; counted twice, the slot would be tried for twice. */
  #freed({ host, bucket, endsInMs, heldMs }: ReleaseReply & { isReleased: true }, isTold: boolean): void {
    this.#engine.emit({ type: "released", host, bucket, endsInMs, heldMs });
    if (endsInMs > 0 || !isTold) this.#hosts.endsIn(host, bucket, endsInMs);
  }
}

/** In server time. What cannot be true, the future and more than a lease ago, counts as now. */
function hitAtOf(
  { hitUpstreamAtMs, callerNow }: ReleaseInput,
  now: number,
  policy: HostPolicy | undefined,
): number | undefined {
  if (hitUpstreamAtMs === undefined) return undefined;
  const agoMs = (callerNow ?? now) - hitUpstreamAtMs;
  const isPossible = agoMs >= 0 && agoMs <= (policy?.leaseMs ?? DEFAULT_LEASE_MS);
  return isPossible ? now - agoMs : now;
}

/** For a slot of a host this instance knows nothing of. */
const DEFAULT_LEASE_MS = 30_000;
