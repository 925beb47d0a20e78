import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/** What a process sends to the API. A real one counts the tokens of the answer by itself. */
export interface Prompt {
  readonly team: string;
  readonly tokens: number;
  readonly takesMs: number;
}

interface Limits {
  readonly tokensPerSecond: number;
  readonly burst: number;
}

/** A model API over HTTP with a limit of tokens. A request above it is refused with 429. */
export class HttpModelApi {
  readonly tokensByTeam = new Map<string, number>();
  served = 0;
  refused = 0;
  readonly #limits: Limits;
  readonly #server: Server;
  #left: number;
  #at = performance.now();

  static async start(limits: Limits): Promise<HttpModelApi> {
    const api = new HttpModelApi(limits);
    api.#server.listen(0, "127.0.0.1");
    await once(api.#server, "listening");
    return api;
  }

  private constructor(limits: Limits) {
    this.#limits = limits;
    this.#left = limits.burst;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks = (await request.toArray()) as Buffer[];
    const prompt = JSON.parse(Buffer.concat(chunks).toString()) as Prompt;
    const isTaken = this.#take(prompt);
    response.statusCode = isTaken ? 200 : 429;
    if (isTaken) await pause(prompt.takesMs);
    response.end(JSON.stringify({ usedTokens: isTaken ? prompt.tokens : 0 }));
  }

  #take({ team, tokens }: Prompt): boolean {
    const { tokensPerSecond, burst } = this.#limits;
    const now = performance.now();
    this.#left = Math.min(burst, this.#left + ((now - this.#at) * tokensPerSecond) / 1000);
    this.#at = now;
    if (tokens > this.#left) {
      this.refused++;
      return false;
    }
    this.#left -= tokens;
    this.served++;
    this.tokensByTeam.set(team, (this.tokensByTeam.get(team) ?? 0) + tokens);
    return true;
  }
}
