import { ConfigError, ControllerError } from "./errors.ts";
import { isTree } from "./layers.ts";
import type { ControllerLayer } from "./load-config.ts";
import type { ControllerAddress, Identity } from "./settings.ts";

/** The two calls to a control plane: for the configuration, and with the counts (`telemetry/control-plane.ts`). */

export interface BootstrapRequest {
  readonly address: ControllerAddress;
  /**
   * The tokens to try in order, as long as the controller rejects them: the current one, then the one from the local
   * configuration.
   */
  readonly tokens: readonly string[];
  readonly identity: Identity;
  readonly instance: string;
  readonly timeoutMs: number;
}

/** Asks for the configuration. Throws a `ControllerError`, or a `ConfigError` if the answer is malformed. */
export async function bootstrap(request: BootstrapRequest): Promise<ControllerLayer> {
  const { tokens } = request;
  for (const [at, apiToken] of tokens.entries()) {
    try {
      return layerOf(await ask(request, apiToken));
    } catch (error) {
      const isUnknown = error instanceof ControllerError && (error.status === 401 || error.status === 403);
      if (!isUnknown || at === tokens.length - 1) throw error;
    }
  }
  throw new RangeError("Expected at least one token to ask the controller with, got none");
}

async function ask({ address, identity, instance, timeoutMs }: BootstrapRequest, apiToken: string): Promise<unknown> {
  const body = { role: identity.role, env: identity.env ?? "", instance_id: instance };
  const response = await postToController({ ...address, apiToken }, "bootstrap", body, timeoutMs);
  return jsonOf(response, "bootstrap", timeoutMs);
}

/** `null` counts as absent, as everywhere. The contents of `slotHandler` are checked with the other layers. */
function layerOf(answer: unknown): ControllerLayer {
  if (!isTree(answer)) throw new ConfigError(["Expected the answer to be a JSON object (controller)"]);
  const { configVersion: version = null, slotHandler: tree = null } = answer;
  const problems: string[] = [];
  const isVersion = typeof version === "number" || (typeof version === "string" && version !== "");
  if (version !== null && !isVersion) problems.push("Expected `configVersion` to be a string or a number (controller)");
  if (tree !== null && !isTree(tree)) problems.push("Expected `slotHandler` to be an object (controller)");
  if (problems.length > 0) throw new ConfigError(problems);
  // The version is sent in a header, so other characters are replaced.
  const shown = version === null ? "controller" : String(version).replaceAll(/[^\x20-\x7e]/g, "?");
  return { version: shown, tree: isTree(tree) ? tree : {} };
}

/** The largest answer that is read. A configuration of a thousand hosts has a tenth of it. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * Sends `POST {base}/{path}` with the bearer token, and returns the answer if it is a 2xx, without reading its body.
 * Throws a `ControllerError` whose message contains neither the token nor the address, because an address may contain a
 * secret. A redirect is not followed, because it would send the token elsewhere.
 */
export async function postToController(
  { base, apiToken }: ControllerAddress,
  path: "bootstrap" | "metrics",
  body: object,
  timeoutMs: number,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${base}/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    throw unanswered(path, error, timeoutMs);
  }
  if (response.ok) return response;
  const { status } = response;
  dismiss(response);
  const kind = status >= 400 && status < 500 ? "refused" : "unanswered";
  throw new ControllerError(kind, `the controller answered ${path} with ${status}`, status);
}

/** Discards a body so that the connection is freed; errors while doing so are ignored. */
export function dismiss({ body }: Response): void {
  body?.cancel().catch(() => {});
}

async function jsonOf(response: Response, path: string, timeoutMs: number): Promise<unknown> {
  let text: string;
  try {
    text = await boundedText(response, path);
  } catch (error) {
    throw error instanceof ControllerError ? error : unanswered(path, error, timeoutMs);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ControllerError("unanswered", `the controller's answer to ${path} is not JSON`);
  }
}

async function boundedText(response: Response, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop early cancels the body.
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > ANSWER_BYTES) throw new ControllerError("unanswered", `the controller's answer to ${path} is too long`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function unanswered(path: string, error: unknown, timeoutMs: number): ControllerError {
  const { name, cause } = error as Error;
  const { code = "the connection failed" } = (cause ?? {}) as { code?: string };
  const reason = name === "TimeoutError" ? `not within ${timeoutMs} ms` : code;
  return new ControllerError("unanswered", `the controller did not answer ${path}: ${reason}`);
}
