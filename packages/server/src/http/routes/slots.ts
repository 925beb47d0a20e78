import type { ReleaseCall, ReleaseReply } from "@slotkeeper/protocol";
import { CancelSchema, ReleaseSchema, RenewSchema, ReportSchema } from "@slotkeeper/protocol/schemas";
import { validator } from "../../validation/validator.ts";
import type { BodyHandler } from "../handler.ts";
import { NO_HOST, namedHost } from "../host-key.ts";
import { isHostTooMany } from "../host-limit.ts";
import { aMoment, withinPatience } from "../store-patience.ts";

const releaseCall = validator(ReleaseSchema);
const renewCall = validator(RenewSchema);
const cancelCall = validator(CancelSchema);
const reportCall = validator(ReportSchema);

/** Sends the release to the store in the background, even if this connection breaks. The token names the host. */
export const release: BodyHandler = async (exchange, body, { queue }) => {
  const checked = releaseCall.check(body);
  let call = body as ReleaseCall;
  if ("problems" in checked) {
    const errors = checked.problems.filter(({ field }) => field === "slotToken");
    if (errors.length > 0) {
      exchange.problem("BAD_FIELDS", undefined, { errors });
      return;
    }
    // A slot that is not released costs more than an invalid field.
    const bad = new Set(checked.problems.map(({ field }) => field));
    call = Object.fromEntries(Object.entries(body).filter(([key]) => !bad.has(key))) as ReleaseCall;
  }
  const { slotToken, hitUpstreamAtMs, status, now } = call;
  // While another instance is alive, this one must not die between the answer and the commit: a caller without an answer
  // repeats the call there.
  const isHeld = await aMoment<boolean | undefined>((onAccepted) =>
    queue.release({ slotToken, hitUpstreamAtMs, callerNow: now, status }, onAccepted),
  );
  exchange.json((isHeld === false ? { result: "ok", released: false } : { result: "ok" }) satisfies ReleaseReply);
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

export const report: BodyHandler = async (exchange, body, context) => {
  const { queue, log, telemetry, live } = context;
  const checked = reportCall.check(body);
  if ("problems" in checked) {
    exchange.problem("BAD_FIELDS", undefined, { errors: checked.problems });
    return;
  }
  const named = namedHost(checked.value, live.hosts.names) ?? NO_HOST;
  if ("field" in named) {
    exchange.problem("BAD_FIELDS", undefined, { errors: [named] });
    return;
  }
  const { host, hostname } = named;
  if (isHostTooMany(host, context)) {
    context.refusals.refuse(exchange, "hosts", live.config.settings.limits.hosts);
    return;
  }
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
