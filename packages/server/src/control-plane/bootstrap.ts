import { ConfigError } from "../config/config-error.ts";
import { isTree } from "../config/layers.ts";
import type { ControllerLayer } from "../config/load-config.ts";
import type { ControllerAddress, Identity } from "../config/settings.ts";
import { jsonOf, postToController } from "./controller-client.ts";
import { ControllerError } from "./controller-error.ts";

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
