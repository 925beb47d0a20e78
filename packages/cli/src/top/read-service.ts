import type { ServiceHistory, ServiceState } from "@slotkeeper/server";
import { answerTo, ServiceCallError } from "../call-service.ts";
import type { HostState } from "../operate/call-operator.ts";
import { KEY_HINTS } from "../service-flags.ts";

/** The data on the screen: all hosts, and more of the host that is open. */
export interface Snapshot {
  readonly state: ServiceState;
  readonly history: ServiceHistory;
  readonly open: OpenHost | undefined;
}

interface OpenHost {
  readonly key: string;
  /** `undefined` if the service no longer knows the host. */
  readonly host: HostState | undefined;
  readonly history: ServiceHistory;
}

const TIMEOUT_MS = 5_000;
const PAGE = 1_000;
const SESSIONS = 200;

/** Reads the internal API of one service. */
export class ServiceReader {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, headers: Readonly<Record<string, string>>) {
    this.url = url.replace(/\/+$/, "");
    this.#headers = headers;
  }

  async read(open: string | undefined): Promise<Snapshot> {
    const [state, history, opened] = await Promise.all([
      this.#allHosts(),
      this.#get<ServiceHistory>("/history"),
      open === undefined ? undefined : this.#host(open),
    ]);
    return { state, history, open: opened };
  }

  async #allHosts(): Promise<ServiceState> {
    const first = await this.#get<ServiceState>(`/state?sessions=0&limit=${PAGE}`);
    const hosts = [...first.hosts];
    while (hosts.length < first.total) {
      const next = await this.#get<ServiceState>(`/state?sessions=0&limit=${PAGE}&offset=${hosts.length}`);
      if (next.hosts.length === 0) break;
      hosts.push(...next.hosts);
    }
    return { ...first, hosts };
  }

  async #host(key: string): Promise<OpenHost> {
    const query = `by=key&host=${encodeURIComponent(key)}`;
    const [state, history] = await Promise.all([
      this.#get<ServiceState>(`/state?${query}&sessions=${SESSIONS}`),
      this.#get<ServiceHistory>(`/history?${query}`),
    ]);
    return { key, host: state.hosts[0], history };
  }

  async #get<T>(path: string): Promise<T> {
    const init = { headers: this.#headers, signal: AbortSignal.timeout(TIMEOUT_MS) };
    const response = await answerTo(this.url, `/api/v0${path}`, init).catch((error: unknown) => {
      throw inShort(error);
    });
    return (await response.json()) as T;
  }
}

/** The view has one line for a refusal. */
function inShort(error: unknown): unknown {
  if (!(error instanceof ServiceCallError) || error.status === undefined) return error;
  const { code, status } = error;
  const hidden = `The service does not show its state. ${KEY_HINTS.internalToken} A service without such a token answers only callers on its own machine.`;
  const text = status === 404 ? hidden : `The service answered ${status}.`;
  return new ServiceCallError(code, text, { status, cause: error });
}
