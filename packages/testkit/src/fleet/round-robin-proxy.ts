/**
 * A balancer as it is commonly used in front of a fleet: every request goes to the next instance, for any session.
 *
 * BAL1  Each instance is asked for `/readyz` every `CHECK_MS`. An instance that does not answer 200 in time gets no
 *     requests. If none does, all get them.
 * BAL2  An instance that refuses the connection is skipped, and the request goes to the next one. A request that was
 *     sent is never sent again: if its connection breaks, the caller gets 502.
 * BAL3  Requests at an instance that does not answer `/livez` end with 502.
 */
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const CHECK_MS = 300;
const CHECK_TIMEOUT_MS = 1_000;

interface Target {
  url: string;
  agent: Agent;
  isReady: boolean;
  readonly onward: Set<{ destroy(error: Error): void }>;
}

export class RoundRobinProxy {
  readonly #targets: Target[];
  readonly #server: Server;
  readonly #checks: NodeJS.Timeout;
  #next = 0;

  private constructor(urls: readonly string[]) {
    this.#targets = urls.map((url) => ({ url, agent: newAgent(), isReady: true, onward: new Set() }));
    this.#server = createServer({ keepAliveTimeout: 75_000 }, (incoming, outgoing) => {
      void this.#pass(incoming, outgoing);
    });
    this.#checks = setInterval(() => {
      for (const target of this.#targets) void check(target);
    }, CHECK_MS);
  }

  static async start(urls: readonly string[]): Promise<RoundRobinProxy> {
    const proxy = new RoundRobinProxy(urls);
    await new Promise<void>((resolve) => void proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** An instance has started again at another address. It gets requests at once. */
  replace(at: number, url: string): void {
    const target = this.#targets[at] as Target;
    target.agent.destroy();
    this.#targets[at] = { url, agent: newAgent(), isReady: true, onward: new Set() };
  }

  close(): void {
    clearInterval(this.#checks);
    this.#server.close();
    this.#server.closeAllConnections();
    for (const { agent } of this.#targets) agent.destroy();
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await bytesOf(incoming).catch(() => undefined);
    if (body === undefined) return;
    let failure: NodeJS.ErrnoException | undefined;
    for (const target of this.#inTurn()) {
      failure = await forward(target, incoming, outgoing, body);
      if (failure?.code !== "ECONNREFUSED") break;
      target.isReady = false;
    }
    if (failure === undefined || outgoing.headersSent || outgoing.destroyed) return;
    outgoing.writeHead(502, { "Content-Type": "text/plain" }).end(`No answer: ${failure.message}\n`);
  }

  /** Every instance that may get requests, starting with the next one. */
  #inTurn(): Target[] {
    const ready = this.#targets.filter(({ isReady }) => isReady);
    const asked = ready.length > 0 ? ready : this.#targets;
    const first = this.#next++ % asked.length;
    return [...asked.slice(first), ...asked.slice(0, first)];
  }
}

async function check(target: Target): Promise<void> {
  const [isReady, isAlive] = await Promise.all([isOk(`${target.url}/readyz`), isOk(`${target.url}/livez`)]);
  target.isReady = isReady;
  if (isAlive) return;
  for (const onward of target.onward) onward.destroy(new Error("the instance does not answer"));
}

function isOk(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(url, { timeout: CHECK_TIMEOUT_MS }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => resolve(false)).on("close", () => resolve(false));
    asked.end();
  });
}

/** Resolves with the reason if there was no answer. */
function forward(
  { url, agent, onward: open }: Target,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  body: Buffer,
): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const { method, headers, url: path = "/" } = incoming;
    const onward = request(url + path, { method, headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      answer.once("end", () => resolve(undefined)).once("error", resolve);
    });
    open.add(onward);
    onward.on("error", resolve);
    onward.once("close", () => open.delete(onward));
    // If the caller disconnects, the connection to the instance is closed, too.
    outgoing.once("close", () => onward.destroy());
    onward.end(body);
  });
}

function newAgent(): Agent {
  return new Agent({ keepAlive: true, maxFreeSockets: 64 });
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
