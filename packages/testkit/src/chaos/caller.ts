import { Agent, type ClientRequest, request } from "node:http";
import type { CallName } from "../history/line.ts";
import type { HistoryRecorder } from "../history/recorder.ts";

export interface Reply {
  /** `undefined` if no answer came. */
  readonly status: number | undefined;
  readonly body: { readonly [field: string]: unknown };
}

/** The calls of one client to the service, as they go into the history. Every failure is a reply without a status. */
export class Caller {
  readonly #url: string;
  readonly #recorder: HistoryRecorder;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #open = new Set<ClientRequest>();

  constructor(url: string, recorder: HistoryRecorder) {
    this.#url = url;
    this.#recorder = recorder;
  }

  async post(call: CallName, message: object, timeoutMs: number): Promise<Reply> {
    const open = this.#recorder.sent(call, message);
    const reply = await this.#send(call, message, timeoutMs);
    // A call that failed may have taken effect.
    if (reply.status === undefined || reply.status >= 500) open.gaveUp();
    else open.answered(reply.status, reply.body);
    return reply;
  }

  #send(call: CallName, message: object, timeoutMs: number): Promise<Reply> {
    return new Promise((resolve) => {
      const options = { method: "POST", agent: this.#agent, headers: { "Content-Type": "application/json" } };
      const outgoing = request(`${this.#url}/api/v0/fairqueue/${call}`, options, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.once("error", () => resolve(NO_ANSWER)).once("end", () => resolve(replyOf(answer.statusCode, text)));
      });
      const timer = setTimeout(() => outgoing.destroy(), timeoutMs);
      this.#open.add(outgoing);
      outgoing.on("error", () => resolve(NO_ANSWER));
      outgoing.once("close", () => {
        clearTimeout(timer);
        this.#open.delete(outgoing);
        resolve(NO_ANSWER);
      });
      outgoing.end(JSON.stringify(message));
    });
  }

  /** Closes all connections, as if the process had died. */
  close(): void {
    for (const outgoing of this.#open) outgoing.destroy();
    this.#agent.destroy();
  }
}

const NO_ANSWER: Reply = { status: undefined, body: {} };

function replyOf(status: number | undefined, text: string): Reply {
  try {
    return { status, body: JSON.parse(text) as Reply["body"] };
  } catch {
    return { status, body: {} };
  }
}
