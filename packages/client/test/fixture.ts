/** A real service on its own port, a proxy in front of it, and a client. All are closed after the test. */
import { SlotClient, type SlotClientOptions } from "@slotkeeper/client";
import type { ServiceState } from "@slotkeeper/protocol";
import { Service } from "@slotkeeper/server";
import { FaultProxy } from "@slotkeeper/testkit/proxy";
import { afterEach } from "vitest";

export class World {
  readonly proxy: FaultProxy;
  #service: Service;
  readonly #config: object;

  constructor(service: Service, proxy: FaultProxy, config: object) {
    this.#service = service;
    this.proxy = proxy;
    this.#config = config;
  }

  /** The address of the service itself, without the proxy. */
  get direct(): string {
    return this.#service.url;
  }

  client(options: Partial<SlotClientOptions> = {}): SlotClient {
    return new SlotClient({ url: this.proxy.url, ...options });
  }

  async state(): Promise<ServiceState> {
    return stateOf(this.direct);
  }

  /** Slots in use and sessions waiting, on all hosts: no test may leave any behind. */
  async left(): Promise<{ slots: number; sessions: number }> {
    const { hosts, sessions } = await this.state();
    const slots = hosts.flatMap((host) => host.slots).filter(({ isReleased }) => !isReleased);
    return { slots: slots.length, sessions: sessions["pending"] ?? 0 };
  }

  /** Waits until the service shows what is expected; fails with what it shows at the end. */
  async until(expected: { slots: number; sessions: number }): Promise<void> {
    const endsAt = Date.now() + 10_000;
    for (;;) {
      const left = await this.left();
      if (left.slots === expected.slots && left.sessions === expected.sessions) return;
      if (Date.now() > endsAt) throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(left)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async stop(): Promise<void> {
    await this.#service.stop({ graceMs: 0, deadlineMs: 500 });
  }

  /** Starts a new service on the same port with the same configuration. It has no state of the old one. */
  async start(): Promise<void> {
    this.#service = await startService({ ...this.#config, listen: new URL(this.direct).host });
  }
}

export async function startService(config: object): Promise<Service> {
  const log = { write: () => true, isJson: true, hasColours: false };
  return Service.start({ flags: { listen: "127.0.0.1:0", ...config }, environment: {}, log });
}

export async function stateOf(url: string): Promise<ServiceState> {
  return (await (await fetch(`${url}/api/v0/state`)).json()) as ServiceState;
}

const worlds = new Set<World>();

export async function startWorld(config: object = {}): Promise<World> {
  const service = await startService(config);
  const world = new World(service, await FaultProxy.start(service.url), config);
  worlds.add(world);
  return world;
}

afterEach(async () => {
  for (const world of worlds) {
    await world.proxy.refuse();
    await world.stop();
  }
  worlds.clear();
});
