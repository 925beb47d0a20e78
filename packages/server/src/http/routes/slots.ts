import type { ReleaseCall } from "@slotkeeper/protocol";
import { CancelSchema, ReleaseSchema, RenewSchema, ReportSchema } from "@slotkeeper/protocol/schemas";
import { validator } from "../../validation/validator.ts";
import type { BodyHandler } from "../handler.ts";
import { namedHost } from "../host-key.ts";
import { withinPatience } from "../store-patience.ts";

const releaseCall = validator(ReleaseSchema);
const renewCall = validator(RenewSchema);
const cancelCall = validator(CancelSchema);
const reportCall = validator(ReportSchema);

/** Answers at once. The store gets it in the background, whatever becomes of this connection. The token names the host. */
export const release: BodyHandler = (exchange, body, { queue }) => {
  const checked = releaseCall.check(body);
  let call = body as ReleaseCall;
  if ("problems" in checked) {
    const errors = checked.problems.filter(({ field }) => field === "slotToken");
    if (errors.length > 0) {
      exchange.problem("BAD_FIELDS", undefined, { errors });
      return;
    }
    // A slot that is not given back costs more than a field that is not understood.
    const bad = new Set(checked.problems.map(({ field }) => field));
    call = Object.fromEntries(Object.entries(body).filter(([key]) => !bad.has(key))) as ReleaseCall;
  }
  const { slotToken, hitUpstreamAtMs, status, now } = call;
  queue.release({ slotToken, hitUpstreamAtMs, callerNow: now, status });
  exchange.json({ result: "ok" });
};

export const renew: BodyHandler = async (exchange, body, { queue, log }) => {
  const checked = renewCall.check(body);
  if ("problems" in checked) {
    exchange.problem("BAD_FIELDS", undefined, { errors: checked.problems });
    return;
  }
  try {
    const reply = await withinPatience(queue.renew(checked.value.slotToken));
    if (reply === undefined) exchange.problem("SLOT_LOST");
    else exchange.json({ result: "ok", leaseMs: Math.floor(reply.leaseMs) });
  } catch (error) {
    log.warn("renew failed", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE", undefined, { headers: { "Retry-After": 1 } });
  }
};

/** Never waits. */
export const cancel: BodyHandler = (exchange, body, { queue, live }) => {
  const checked = cancelCall.check(body);
  if ("problems" in checked) {
    exchange.problem("BAD_FIELDS", undefined, { errors: checked.problems });
    return;
  }
  const verified = live.tokens.verify(checked.value.queryToken);
  if (verified.kind === "forged") exchange.problem("BAD_TOKEN");
  else exchange.json({ result: verified.kind === "valid" ? queue.cancel(verified.claims) : "gone" });
};

export const report: BodyHandler = async (exchange, body, { queue, log, telemetry }) => {
  const checked = reportCall.check(body);
  const errors = "problems" in checked ? [...checked.problems] : [];
  const named = errors.length === 0 ? namedHost(body) : undefined;
  if ("problems" in checked || named === undefined) {
    if (errors.length === 0) errors.push({ field: "hostname", message: "`hostname` or `hostnameHash` is required" });
    exchange.problem("BAD_FIELDS", undefined, { errors });
    return;
  }
  const { host, hostname } = named;
  try {
    const { status } = checked.value;
    await withinPatience(queue.report({ host, ...(hostname === undefined ? {} : { hostname }), status }));
    telemetry.hub.stir(host);
    exchange.json({ result: "ok" });
  } catch (error) {
    log.warn("report failed", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE", undefined, { headers: { "Retry-After": 1 } });
  }
};
