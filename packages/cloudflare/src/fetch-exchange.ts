import { LIMITS } from "@slotkeeper/protocol";
import { newRequestId } from "@slotkeeper/server/node-crypto";
import {
  type Headers as AnswerHeaders,
  BaseExchange,
  type Body,
  type EventStream,
  type Exchange,
  type Leaving,
  NO_SNIFF,
  parseBody,
} from "@slotkeeper/server/portable";

/** An exchange over a `Request`. Its answer is `response`. */
export class FetchExchange extends BaseExchange implements Exchange {
  readonly #request: Request;
  readonly #url: URL;
  readonly #set: [string, string][] = [];
  readonly id: string;
  readonly isLocal: boolean;
  readonly response: Promise<Response>;
  #answer!: (response: Response) => void;
  status = 0;

  /** `isLocal`: the caller has the binding, so it belongs to the same account. */
  constructor(request: Request, isLocal: boolean) {
    super();
    this.#request = request;
    this.#url = new URL(request.url);
    this.isLocal = isLocal;
    const id = this.header("x-request-id");
    this.id = id !== undefined && /^[\w.:-]{1,64}$/.test(id) ? id : newRequestId();
    this.response = new Promise((resolve) => {
      this.#answer = resolve;
    });
  }

  get method(): string {
    return this.#request.method;
  }

  get path(): string {
    return this.#url.pathname;
  }

  get query(): URLSearchParams {
    return this.#url.searchParams;
  }

  get peer(): string {
    return this.header("cf-connecting-ip") ?? "unknown";
  }

  get leaving(): Leaving | undefined {
    return this.#request.signal.aborted ? "left" : undefined;
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  onLeave(listener: (why: Leaving) => void): void {
    this.#request.signal.addEventListener("abort", () => listener("left"));
  }

  setHeader(name: string, value: string): void {
    this.#set.push([name, value]);
  }

  async body(): Promise<Body> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const reader = this.#request.body?.getReader();
    for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
      size += read.value.length;
      if (size > LIMITS.bodyBytes) {
        await reader?.cancel();
        return { kind: "too-large", isDrained: true };
      }
      chunks.push(read.value);
    }
    const bytes = await new Blob(chunks as BlobPart[]).arrayBuffer();
    return parseBody(new TextDecoder().decode(bytes), () => isUtf8(bytes));
  }

  send(status: number, type: string, body: string | Uint8Array, headers?: AnswerHeaders): void {
    const own = { "Content-Type": type, "Cache-Control": "no-store", ...headers };
    this.#respond(status, this.method === "HEAD" ? null : body, own);
  }

  empty(status: 204 | 304, headers?: AnswerHeaders): void {
    this.#respond(status, null, headers);
  }

  stream(type: string, headers: AnswerHeaders): EventStream | undefined {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, READ_AHEAD);
    this.#respond(200, this.method === "HEAD" ? null : readable, { "Content-Type": type, ...headers });
    return this.method === "HEAD" ? undefined : streamOver(writable, this.#request.signal);
  }

  /** Passes on the answer of an object. */
  relay(response: Response): void {
    const copy = new Response(response.body, response);
    for (const [name, value] of this.#set) copy.headers.set(name, value);
    this.status = response.status;
    this.#answer(copy);
  }

  /** The caller has left: no answer is read. */
  leave(): void {
    this.#answer(new Response(null, { status: 499 }));
  }

  fail(): void {
    if (this.status === 0) this.problem("INTERNAL");
  }

  #respond(status: number, body: BodyInit | null | Uint8Array, headers: AnswerHeaders = {}): void {
    this.status = status;
    const all = { ...NO_SNIFF, "X-Request-Id": this.id, ...headers };
    const response = new Response(body as BodyInit | null, { status });
    for (const [name, value] of [...this.#set, ...Object.entries(all)]) response.headers.set(name, value);
    this.#answer(response);
  }
}

/** How much a listener may leave unread, in bytes; the hub drops it before. */
const READ_AHEAD: QueuingStrategy<Uint8Array> = { highWaterMark: 1024 * 1024, size: (chunk) => chunk?.length ?? 0 };

function streamOver(writable: WritableStream<Uint8Array>, signal: AbortSignal): EventStream {
  const writer = writable.getWriter();
  let unread = 0;
  const closed = new Set<() => void>();
  const close = () => {
    for (const listener of closed) listener();
    closed.clear();
  };
  writer.closed.then(close, close);
  signal.addEventListener("abort", close);
  return {
    get writableLength() {
      return unread;
    },
    once: (_event, listener) => closed.add(listener),
    write(message) {
      unread += message.length;
      writer.write(message).then(() => {
        unread -= message.length;
      }, close);
    },
    end: () => writer.close().catch(close),
    destroy: () => writer.abort().catch(close),
  };
}

function isUtf8(bytes: ArrayBuffer): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
