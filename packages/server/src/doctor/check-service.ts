import { once } from "node:events";
import { createServer } from "node:net";
import type { LoadedConfig } from "../config/load-config.ts";
import type { ListenAddress } from "../config/settings.ts";
import { VERSION } from "../version.ts";
import { systemWords } from "../words/system-words.ts";
import { hostFindings } from "./check-hosts.ts";
import { type Finding, ok, problem, problemIf, warningIf } from "./finding.ts";

/** How long a running service may take to answer. */
const ANSWER_MS = 1_000;

/** What was found at the address of the configuration. */
type Seen =
  | { readonly kind: "service"; readonly version: string; readonly notReady: string | undefined }
  | { readonly kind: "other" | "silent" }
  | { readonly kind: "nothing" };

/** Whether a service runs at the address and is ready; if none does, whether one could listen there. */
export async function serviceFindings(config: LoadedConfig): Promise<readonly Finding[]> {
  const { listen, backend } = config.settings;
  if (listen.port === 0) return [ok("service", "Port 0: the system chooses a free port at every start.")];
  const place = `${listen.host ?? "this machine"}, port ${listen.port}`;
  const seen = await look(listen);
  switch (seen.kind) {
    case "service":
      return [...runningFindings(seen, place, backend.mode === "memory"), ...(await hostFindings(config, get))];
    case "nothing":
      return [await freeFinding(listen, place)];
    case "other":
    case "silent":
      return [occupied(place, seen.kind)];
  }
}

/** Whether a service answers at the address of this configuration. */
export async function isServedAt(listen: ListenAddress): Promise<boolean> {
  return listen.port !== 0 && (await look(listen)).kind === "service";
}

async function look(listen: ListenAddress): Promise<Seen> {
  let document: Response;
  try {
    document = await get(listen, "/openapi.json");
  } catch (error) {
    const { name, cause } = error as { name: string; cause?: { code?: string } };
    if (name === "TimeoutError") return { kind: "silent" };
    // Something that does not speak HTTP has accepted the connection.
    return { kind: /^(?:HPE_|UND_ERR_|ECONNRESET)/.test(cause?.code ?? "") ? "other" : "nothing" };
  }
  const { info } = (await document.json().catch(() => ({}))) as { info?: { title?: string; version?: string } };
  if (info?.title !== "Slotkeeper") return { kind: "other" };
  return { kind: "service", version: info.version ?? "?", notReady: await notReady(listen) };
}

async function notReady(listen: ListenAddress): Promise<string | undefined> {
  try {
    const answer = await get(listen, "/readyz");
    if (answer.ok) return undefined;
    const { detail, title } = (await answer.json()) as { detail?: string; title?: string };
    return detail ?? title ?? `status ${answer.status}`;
  } catch (error) {
    return systemWords(error);
  }
}

function get({ host = "127.0.0.1", port }: ListenAddress, path: string, headers = {}): Promise<Response> {
  const name = host.includes(":") ? `[${host}]` : host;
  const signal = AbortSignal.timeout(ANSWER_MS);
  return fetch(`http://${name}:${port}${path}`, { signal, redirect: "manual", headers });
}

/** With a database, the check of the instances reports other versions. */
function runningFindings({ version, notReady }: Extract<Seen, { kind: "service" }>, place: string, isAlone: boolean) {
  const findings = [
    ...problemIf(notReady !== undefined, "service", {
      code: "SERVICE_NOT_READY",
      found: `A service runs at ${place}, and is not ready: ${notReady}.`,
      why: "It grants nothing, and balancers send it no calls.",
      fix: "Read its log and the findings below. It becomes ready by itself when its store answers.",
    }),
    ...warningIf(isAlone && version !== VERSION, "service", {
      code: "VERSION_DRIFT",
      found: `The service at ${place} has version ${version}; this command is ${VERSION}.`,
      why: "These checks are those of another version.",
      fix: "Restart the service with this version, or use the command of its version.",
    }),
  ];
  return findings.length > 0 ? findings : [ok("service", `One runs at ${place}, version ${version}, and is ready.`)];
}

function occupied(place: string, kind: "other" | "silent"): Finding {
  const found = kind === "other" ? "Another program listens" : "Something listens, and does not answer,";
  return problem("service", {
    code: "PORT_IN_USE",
    found: `${found} at ${place}.`,
    why: "`slotkeeper serve` cannot listen there, and exits with 4.",
    fix: "Stop that program, or choose another port in `listen` or with --listen.",
  });
}

/** Listens for a moment: only that shows whether this user may use the address. */
async function freeFinding({ host, port }: ListenAddress, place: string): Promise<Finding> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, "listening");
    return ok("service", `None runs at ${place}. The port is free.`);
  } catch (error) {
    return problem("service", {
      code: "ADDRESS_UNUSABLE",
      found: `Nothing can listen at ${place}: ${systemWords(error)}.`,
      why: "`slotkeeper serve` exits with 4.",
      fix: "Choose another address in `listen` or with --listen; ports below 1024 may need a right of their own.",
    });
  } finally {
    server.close();
  }
}
