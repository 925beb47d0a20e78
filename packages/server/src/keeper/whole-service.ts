import type { IncomingMessage, ServerResponse } from "node:http";
import type { FairQueue, HostStore } from "@slotkeeper/queue";
import { CONTROL_TIMES, ConfigSource } from "../config/config-source.ts";
import { answering } from "../http/dispatch.ts";
import { NodeExchange } from "../http/node-exchange.ts";
import { SERVICE_ROUTER } from "../http/routes/service.ts";
import { LineLogger } from "../log/logger.ts";
import { Scrubber } from "../log/scrubber.ts";
import { ServiceClock } from "../platform/clock.ts";
import { newSecret } from "../platform/node-crypto.ts";
import { ServiceParts } from "../service-parts.ts";

interface WholeServiceInit {
  readonly queue: FairQueue;
  readonly store: HostStore;
  /** The settings of the queue, to be shown. */
  readonly fairQueue: object;
}

/** The routes of the service for operators, and the dashboard, over the queue of a keeper. */
export class WholeService {
  readonly #parts: ServiceParts;
  readonly #token: string;

  private constructor(parts: ServiceParts, token: string) {
    this.#parts = parts;
    this.#token = token;
  }

  static async start({ queue, store, fairQueue }: WholeServiceInit): Promise<WholeService> {
    const token = newSecret();
    const scrubber = new Scrubber();
    const instance = `keeper-${process.pid}`;
    const times = CONTROL_TIMES;
    const log = new LineLogger({
      write: (line) => process.stderr.write(line),
      isJson: true,
      hasColours: false,
      scrubber,
      now: Date.now,
    });
    log.level = "warn";
    const source = new ConfigSource({
      sources: { environment: {}, flags: { internalApiToken: token, fairQueue } },
      instance,
      times,
      log,
      learnSecrets: (secrets) => scrubber.learn(secrets),
      pause: () => Promise.resolve(),
    });
    const opened = {
      store,
      description: "the memory of the keeper",
      tokenKeys: undefined,
      health: () => ({ isReady: true }) as const,
      close: async () => {},
    };
    const base = { clock: new ServiceClock(), scrubber, log, opened, source, times, dashboard: undefined, queue };
    const parts = new ServiceParts(
      await source.first(),
      { ...base, instance, reportedInstance: instance },
      async () => {},
    );
    parts.telemetry.start(queue);
    return new WholeService(parts, token);
  }

  /** For the history and the live view. */
  observe(event: Parameters<ServiceParts["telemetry"]["observe"]>[0]): void {
    this.#parts.telemetry.observe(event);
  }

  /** The folder of the socket has admitted the caller, so it may use the routes of operators. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    request.headers.authorization = `Bearer ${this.#token}`;
    const exchange = new NodeExchange(request, response, false);
    void answering(exchange, this.#parts.context, () => SERVICE_ROUTER.serve(exchange, this.#parts.context));
  }
}
