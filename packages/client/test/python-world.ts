/**
 * A real process of `slotkeeper serve`, a fault proxy in front of it, and an address at which tests in another language
 * control both.
 */
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { ServeProcess } from "@slotkeeper/testkit/fleet";
import { type Fault, FaultProxy, type SeenCall } from "@slotkeeper/testkit/proxy";

interface Command {
  readonly do: "clear" | "fault" | "refuse" | "accept" | "calls" | "restart";
  /** Of `calls` and `fault`: the name of the call. */
  readonly name?: string;
  readonly fault?: Fault;
  /** The fault is for this number of calls, of those whose body has `ifBody`. */
  readonly times?: number;
  readonly ifBody?: string;
}

const budgets = { requests: { limit: 10, perSeconds: 100_000 }, tokens: { limit: 1_000, perSeconds: 1_000_000 } };
/** Each host has one slot. Hosts of `short.example` have a short lease, those of `budget.example` three slots, budgets and classes. */
const CONFIG = {
  fairQueue: {
    maxSlotPerHost: 1,
    maxSlotPerIp: -1,
    hosts: {
      "*.short.example": { zombieTimeoutSeconds: 3 },
      "*.budget.example": { maxSlotPerHost: 3, budgets, classes: { chat: { weight: 4 } } },
    },
  },
};

export class PythonWorld {
  readonly service: string;
  readonly proxy: FaultProxy;
  readonly #configFile: string;
  readonly #server = createServer((request, response) => {
    void bodyOf(request)
      .then((body) => this.#run(JSON.parse(body) as Command))
      .then(
        (result) => response.end(JSON.stringify(result ?? null)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
  });
  #process: ServeProcess;

  static async start(folder: string): Promise<PythonWorld> {
    const configFile = join(folder, "config.json");
    const process = await startAt(configFile, "127.0.0.1:0");
    const world = new PythonWorld(configFile, process, await FaultProxy.start(process.url));
    await new Promise<void>((resolve) => world.#server.listen(0, "127.0.0.1", resolve));
    return world;
  }

  private constructor(configFile: string, process: ServeProcess, proxy: FaultProxy) {
    this.#configFile = configFile;
    this.#process = process;
    this.service = process.url;
    this.proxy = proxy;
  }

  /** What the tests need to know. */
  get addresses(): { readonly service: string; readonly proxy: string; readonly control: string } {
    const control = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return { service: this.service, proxy: this.proxy.url, control };
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.proxy.refuse();
    await this.#process.kill();
  }

  async #run({ do: action, name = "", fault = "none", times = 0, ifBody = "" }: Command): Promise<unknown> {
    switch (action) {
      case "clear":
        this.proxy.fault = "none";
        this.proxy.seen.length = 0;
        await this.proxy.refuse();
        return this.proxy.accept();
      case "fault": {
        let left = times;
        const hits = ({ path, body }: SeenCall) => path.endsWith(`/${name}`) && body.includes(ifBody) && left-- > 0;
        this.proxy.fault = (call) => (hits(call) ? fault : "none");
        return undefined;
      }
      case "refuse":
        return this.proxy.refuse();
      case "accept":
        return this.proxy.accept();
      case "calls":
        return this.proxy.calls(name).map(({ body }) => ({ body: JSON.parse(body) as unknown }));
      case "restart":
        await this.#process.kill();
        this.#process = await startAt(this.#configFile, new URL(this.service).host);
        return undefined;
    }
  }
}

async function startAt(configFile: string, listen: string): Promise<ServeProcess> {
  await writeFile(configFile, JSON.stringify({ ...CONFIG, listen }));
  return ServeProcess.start(configFile);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}
