import type { FairQueueConfig } from "@slotkeeper/protocol";
import { FairQueue, type HostStore, type QueueEvent } from "@slotkeeper/queue";
import { NODE_DIGESTS, newSecret, newSessionId } from "@slotkeeper/server/node-crypto";
import {
  Access,
  Activity,
  answering,
  CALLER_ROUTES,
  type CallerContext,
  type DispatchContext,
  HeldCalls,
  HostSettings,
  hostKeys,
  LiveHub,
  liveFrame,
  OPERATOR_ROUTES,
  type OperatorContext,
  Presence,
  QueryTokens,
  type ReadableStore,
  Refusals,
  RequestLog,
  Router,
  StoreReader,
} from "@slotkeeper/server/portable";
import type { Clock } from "slotkeeper";
import type { CallClock } from "./call-clock.ts";
import { consoleLog } from "./console-log.ts";
import type { FetchExchange } from "./fetch-exchange.ts";

type Context = CallerContext & OperatorContext & DispatchContext;

const ROUTER = new Router<Context>({ ...CALLER_ROUTES, ...OPERATOR_ROUTES });

/** What a `HostService` needs. */
export interface HostServiceInit {
  readonly fairQueue: FairQueueConfig;
  readonly store: HostStore;
  /** What operators read, if it is not the same. */
  readonly shown?: ReadableStore;
  readonly tokenKeys: readonly string[];
  /** Its timers run while a call is in progress. */
  readonly calls: CallClock;
  /** The time of the store. */
  readonly clock: Clock;
}

/** The routes of callers and operators in an object: the same handlers and the same engine as in the service for Node. */
export class HostService {
  readonly queue: FairQueue;
  readonly reader: StoreReader;
  readonly #calls: CallClock;
  readonly #context: Context;
  readonly #activity: Activity;
  #sampledAt = 0;

  constructor({ fairQueue, store, shown = store, tokenKeys, calls, clock }: HostServiceInit) {
    this.#calls = calls;
    // New with every start: what the object had in memory before belongs to another instance.
    const instance = `object-${newSessionId().slice(0, 8)}`;
    const keyOf = hostKeys(NODE_DIGESTS);
    this.#activity = new Activity(() => clock.now());
    this.queue = new FairQueue({
      store,
      clock,
      newSessionId,
      newSecret,
      instance,
      config: fairQueue,
      observe: (event) => this.#observe(event),
    });
    this.reader = new StoreReader(shown, () => clock.now());
    const live = {
      access: new Access(OPEN, NODE_DIGESTS),
      tokens: new QueryTokens(tokenKeys, NODE_DIGESTS, keyOf),
      hosts: new HostSettings({ settings: { fairQueue }, origins: new Map() }, keyOf),
      limits: { hosts: Number.POSITIVE_INFINITY },
      config: { version: "code" },
    };
    const { queue, reader } = this;
    const hub = new LiveHub({
      clock: calls,
      frame: (hosts, more) => liveFrame(hosts, more, { instance, live, queue, reader }),
      onDropped: () => {},
      onError: (error) => consoleLog.warn("events could not be sent", { error }),
    });
    const refusals = new Refusals(consoleLog);
    this.#context = {
      queue,
      held: new HeldCalls(
        () => MOST_HELD,
        (exchange, limit) => refusals.refuse(exchange, "held_polls", limit),
      ),
      refusals,
      requestLog: new RequestLog(consoleLog),
      log: consoleLog,
      live,
      instance,
      version: "durable-object",
      telemetry: { hub, reader, activity: this.#activity },
      presence: new Presence({
        reader,
        instance,
        about: () => ({ address: "durable object", version: "durable-object" }),
      }),
      newSessionId,
      now: () => clock.now(),
    };
  }

  /** Answers a call. Timers run until its answer is complete. */
  async serve(exchange: FetchExchange): Promise<Response> {
    this.begin();
    try {
      await answering(exchange, this.#context, () => ROUTER.serve(exchange, this.#context));
      if (exchange.status === 0) exchange.leave();
      return this.#untilRead(await exchange.response);
    } finally {
      this.#sample();
      this.#calls.end();
    }
  }

  /** A call begins: what became due since the last one is done first. The caller must end it (`CallClock.end`). */
  begin(): void {
    this.#calls.begin();
    if (this.#calls.calls === 1) this.queue.sweepSessions();
  }

  /** Sends a changed host to the listeners of the events. */
  stir(host: string): void {
    this.#context.telemetry.hub.stir(host);
  }

  #observe(event: QueueEvent): void {
    this.#activity.observe(event);
    if ("host" in event && event.host !== undefined && event.type !== "cycle") this.stir(event.host);
    if (event.type === "store-error") consoleLog.error("the storage failed", { host: event.host, error: event.error });
  }

  /** The listener of events reads an answer that goes on: its timers run as long. */
  #untilRead(response: Response): Response {
    if (response.headers.get("content-type") !== "text/event-stream" || response.body === null) return response;
    this.#calls.begin();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    response.body
      .pipeTo(writable)
      .catch(() => {})
      .finally(() => this.#calls.end());
    return new Response(readable, response);
  }

  #sample(): void {
    const now = this.#calls.now();
    if (now - this.#sampledAt < this.#activity.stepMs) return;
    this.#sampledAt = now;
    void this.#activity.sample(this.reader);
  }
}

/** Who has the binding may do everything: the router checks keys. */
const OPEN = {
  auth: undefined,
  authHeader: "X-FQ-Auth",
  internalApiToken: undefined,
  metricsToken: undefined,
  corsOrigins: [],
} as const;

/** The default of `limits.heldPolls`, here for each host. The runtime has its own limits, too. */
const MOST_HELD = 20_000;
