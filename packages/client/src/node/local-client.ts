import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { SlotClientOptions } from "../options.ts";
import { SlotClient } from "../slot-client.ts";
import { Holder } from "./holder.ts";
import { type KeeperCommand, KeeperLink, NODE_OPTIONS } from "./keeper-link.ts";
import { checkFolder, keeperSocket } from "./socket-folder.ts";

/** Options of `localClient`: those of `SlotClient` that do not concern an address. */
export interface LocalClientOptions extends Omit<SlotClientOptions, "url" | "token" | "header" | "fetch"> {
  /** The socket of the keeper. Default: `SLOTKEEPER_SOCKET`, else one in `/tmp` for this user. */
  readonly socket?: string | undefined;
  /**
   * The command that starts the keeper. Default: `slotkeeper` of the installed `@slotkeeper/cli`, else the one on the
   * PATH.
   */
  readonly command?: KeeperCommand | undefined;
}

/**
 * A `SlotClient` for the slots of this machine, without a service. It starts the keeper if none runs. Its slots end with
 * this process at the latest.
 *
 * @throws {KeeperError} if the folder of the socket is not safe.
 * @example
 * ```ts
 * import { localClient } from "@slotkeeper/client/node";
 *
 * const gpu = localClient().semaphore("gpu", 1);
 * await gpu.run(() => console.log("one at a time on this machine"));
 * ```
 */
export function localClient({ socket, command, ...options }: LocalClientOptions = {}): SlotClient {
  const path = keeperSocket(socket);
  checkFolder(path);
  const link = new KeeperLink(path, () => command ?? installedCommand());
  let holder: Holder | undefined;
  const fetchLocally = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    holder ??= new Holder(path);
    const { status, headers, text } = await link.call({
      path: new URL(String(input)).pathname,
      method: "POST",
      body: init.body as string,
      headers: holder.header({ pid: process.pid, command: process.argv.slice(0, 2).join(" ") }),
      signal: init.signal ?? undefined,
    });
    const retryAfter = headers["retry-after"];
    return new Response(text, {
      status,
      headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    });
  };
  return new SlotClient({ ...options, url: "http://localhost", fetch: fetchLocally });
}

/** The command of the package `@slotkeeper/cli` if it is installed beside this one, else the one on the PATH. */
function installedCommand(): KeeperCommand {
  try {
    const manifest = createRequire(import.meta.url).resolve("@slotkeeper/cli/package.json");
    return [process.execPath, ...NODE_OPTIONS, join(dirname(manifest), "bin/slotkeeper.mjs")];
  } catch {
    return ["slotkeeper"];
  }
}
