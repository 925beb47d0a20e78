import { callService, ServiceCallError } from "./call-service.ts";
import { EXIT, type ExitCode, exitHelp } from "./exit-codes.ts";
import { LOCAL_HELP, LOCAL_OPTIONS } from "./local/local-flags.ts";
import { readFlags } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { KEY_HINTS, OPERATOR_HELP, OPERATOR_OPTIONS, operatorHeaders } from "./service-flags.ts";
import { alignedRows } from "./table.ts";
import { harmless, spanOf } from "./top/terminal-text.ts";

const HELP = `slotkeeper status: shows hosts with their slots and queues.

Usage
  slotkeeper status [--host NAME] [--url URL] [--json]
  slotkeeper status --local [--socket PATH] [--json]

Options
      --host NAME     only this host
${LOCAL_HELP}
${OPERATOR_HELP}
      --json          print the whole state as JSON
  -h, --help          show this text

Examples
  slotkeeper status
  slotkeeper status --local
  slotkeeper status --host api.example.com --json

${exitHelp(["ok", "usage", "unreachable", "refused", "keeper"])}`;

const OPTIONS = { ...OPERATOR_OPTIONS, ...LOCAL_OPTIONS, host: { type: "string" } } as const;

/** The part of the state that the table shows. */
interface State {
  readonly total: number;
  readonly hosts: readonly {
    readonly host: string;
    readonly hostname?: string;
    readonly inFlight: number;
    readonly limit?: number;
    readonly waiting: number;
    readonly breaker: string;
    readonly oldestWaitMs?: number;
  }[];
}

export async function statusCommand(args: readonly string[]): Promise<ExitCode> {
  const flags = readFlags(args, OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  const isJson = flags.json === true;
  if (flags.local === true) return (await import("./local/status-locally.ts")).statusLocally(flags.socket, isJson);
  const query = flags.host === undefined ? "" : `?host=${encodeURIComponent(flags.host)}`;
  try {
    const headers = operatorHeaders(flags["internal-token"]);
    const state = await callService(flags.url, `/api/v0/state${query}`, { headers });
    process.stdout.write(isJson ? `${JSON.stringify(state)}\n` : tableOf(state as State, flags.host));
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(explained(error), isJson);
  }
}

/** The service answers 404 to a call of its internal API without the token. */
function explained(error: unknown): unknown {
  if (!(error instanceof ServiceCallError) || error.status !== 404) return error;
  return new ServiceCallError("REFUSED", `${error.message} ${KEY_HINTS.internalToken}`, { cause: error });
}

function tableOf({ hosts, total }: State, asked: string | undefined): string {
  if (hosts.length === 0) {
    return asked === undefined ? "No host has slots or waiters.\n" : `The host "${asked}" has no slots or waiters.\n`;
  }
  const rows = hosts.map(({ host, hostname, inFlight, limit, waiting, breaker, oldestWaitMs }) => [
    harmless(hostname ?? host),
    `${inFlight}/${limit || "-"}`,
    String(waiting),
    oldestWaitMs ? spanOf(oldestWaitMs) : "-",
    breaker,
  ]);
  const table = alignedRows([["HOST", "SLOTS", "WAITING", "OLDEST", "BREAKER"], ...rows]);
  return total > hosts.length ? `${table}… and ${total - hosts.length} more: --json, or --host NAME\n` : table;
}
