import { LIVE_LIMITS, type LiveLimitKey, SEMAPHORE_PREFIX, sumOfFloors } from "@slotkeeper/protocol";
import { BreakerCallSchema, LiveLimitsSchema, PauseCallSchema } from "@slotkeeper/protocol/schemas";
import type { LiveLimits, Operation } from "@slotkeeper/queue";
import type { LogFields } from "../../log/logger.ts";
import { NO_LIMIT } from "../../queue/host-settings.ts";
import type { NamedHost } from "../../queue/names.ts";
import { nearestFirst } from "../../words/near-match.ts";
import { type Checked, type FieldProblem, validator } from "../../words/validator.ts";
import { type AuditedAction, audit } from "../audit.ts";
import type { OperatorContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import { badFields, type Exchange } from "../exchange.ts";
import { operatorsHost, segmentOf, slotNamed, unknownHost } from "../path-host.ts";
import { withinPatience } from "../store-patience.ts";

const limitsCall = validator(LiveLimitsSchema);
const breakerCall = validator(BreakerCallSchema);
const pauseCall = validator(PauseCallSchema);

export const limits: Handler<OperatorContext> = async (exchange, context, body) => {
  const call = callOf(exchange, context, limitsCall.check(body), withKnownLimits);
  if (call === undefined) return;
  const { named, value } = call;
  if (named.hostname?.startsWith(SEMAPHORE_PREFIX) === true) {
    const message = "The users of a named semaphore choose its number of slots: live limits cannot be set for it";
    return badFields(exchange, { field: "host", message });
  }
  const operation: Operation = { kind: "limits", ...named, limits: liveLimits(value) };
  await act(exchange, context, "limits", operation, { ...named, limits: { ...value } }, () =>
    tooFewSlots(value.maxSlotPerHost, named, context),
  );
};

/** Floors leave at least one slot, of the limits that are in force in the store. */
async function tooFewSlots(
  slots: number | undefined,
  { host, hostname }: NamedHost,
  { telemetry, live }: OperatorContext,
): Promise<FieldProblem | undefined> {
  if (slots === undefined) return undefined;
  const stored = (await telemetry.reader.hosts([host])).get(host);
  const classes =
    stored === undefined
      ? live.hosts.policyOf(hostname).classes
      : Object.fromEntries(stored.classes.map((one) => [one.name, one]));
  const floors = sumOfFloors(classes);
  if (floors === 0 || slots > floors) return undefined;
  const field = "maxSlotPerHost";
  return {
    field,
    message: `Expected \`${field}\` to be above ${floors}, the sum of the floors of the host's classes, got ${slots}`,
  };
}

export const breaker: Handler<OperatorContext> = async (exchange, context, body) => {
  const call = callOf(exchange, context, breakerCall.check(body));
  if (call === undefined) return;
  const { named, value } = call;
  const { state } = value;
  const operation: Operation = { kind: "breaker", ...named, isOpen: state === "open" };
  await act(exchange, context, "breaker", operation, { ...named, state });
};

export const pause: Handler<OperatorContext> = async (exchange, context, body) => {
  const call = callOf(exchange, context, pauseCall.check(body));
  if (call === undefined) return;
  const { named, value } = call;
  const { paused } = value;
  await act(exchange, context, "pause", { kind: "pause", ...named, isPaused: paused }, { ...named, paused });
};

export const revoke: Handler<OperatorContext> = async (exchange, context) => {
  const text = segmentOf(exchange, 1) ?? "";
  const named = slotNamed(text);
  if (named === undefined) {
    const message = `Expected \`id\` to be \`<host>.<fence>\`, as the state shows it, got ${JSON.stringify(text)}`;
    return badFields(exchange, { field: "id", message });
  }
  await act(exchange, context, "revoke", { kind: "revoke", ...named }, { slot: text });
};

/** For an unknown key, names the limits that can be set live, the nearest first. */
function withKnownLimits({ field, message }: FieldProblem): FieldProblem {
  if (!message.startsWith("Unknown key")) return { field, message };
  const known = nearestFirst(
    field,
    LIVE_LIMITS.map(({ key }) => key),
  );
  return { field, message: `${message}. Live limits are ${known.map((key) => `\`${key}\``).join(", ")}` };
}

/** The limits by the names of the engine; `undefined` if none is set. */
function liveLimits(call: { readonly [K in LiveLimitKey]?: number }): LiveLimits | undefined {
  const given = LIVE_LIMITS.filter(({ key }) => call[key] !== undefined);
  if (given.length === 0) return undefined;
  return Object.fromEntries(given.map(({ key, field }) => [field, call[key] === 0 ? NO_LIMIT : call[key]]));
}

/** The host of the path and the fields of the body; `undefined` if a problem was already answered. */
function callOf<T>(
  exchange: Exchange,
  context: OperatorContext,
  checked: Checked<T>,
  explained = (problem: FieldProblem) => problem,
): { readonly named: NamedHost; readonly value: T } | undefined {
  const named = operatorsHost(exchange, segmentOf(exchange, 1) ?? "", context);
  if ("value" in checked && !("errors" in named)) return { named, value: checked.value };
  const ofFields = "problems" in checked ? checked.problems.map(explained) : [];
  return badFields(exchange, ...ofFields, ...("errors" in named ? named.errors : []));
}

async function act(
  exchange: Exchange,
  context: OperatorContext,
  action: AuditedAction,
  operation: Operation,
  fields: LogFields,
  problem?: () => Promise<FieldProblem | undefined>,
): Promise<void> {
  let isDone: boolean;
  try {
    const unknown = operation.kind === "revoke" ? undefined : await unknownHost(exchange, operation, context);
    if (unknown !== undefined) {
      exchange.problem("NOT_FOUND", unknown);
      return;
    }
    const found = await problem?.();
    if (found !== undefined) return badFields(exchange, found);
    isDone = await withinPatience(context.queue.operate(operation));
  } catch (error) {
    audit(context, exchange, action, { ...fields, outcome: "failed" });
    context.log.warn("an operator's action failed", { requestId: exchange.id, action, error });
    exchange.problem("UNAVAILABLE", "The store did not answer. The action may still have taken effect");
    return;
  }
  audit(context, exchange, action, { ...fields, outcome: isDone ? "done" : "refused" });
  context.telemetry.hub.stir(operation.host);
  if (isDone) exchange.empty(204);
  else exchange.problem("NOT_FOUND", "No such slot is held. It may have been released just now");
}
