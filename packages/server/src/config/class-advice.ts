import { DEFAULT_CLASS, type HostConfig, SEMAPHORE_PREFIX, type ServiceConfig } from "@slotkeeper/protocol";
import { resolveOptions } from "@slotkeeper/queue";
import { fieldName } from "../words/validator.ts";
import { type Advice, adviceIf } from "./advice.ts";

/** Classes that are valid, but of which a limit has no effect, or more effect than its author may expect. */
export function classAdvice(config: ServiceConfig): Advice[] {
  const { rpc: _names, ...fairQueue } = config.fairQueue ?? {};
  const { defaults, hosts } = resolveOptions(fairQueue);
  return [
    ...adviceAt("fairQueue", defaults, defaults),
    ...Object.entries(hosts)
      .filter(([host]) => !host.startsWith(SEMAPHORE_PREFIX))
      .flatMap(([host, own]) => adviceAt(fieldName(["fairQueue", "hosts", host]), own, { ...defaults, ...own })),
  ];
}

/** `own` has the keys that this level sets. A conflict is reported at the level that sets one of its keys. */
function adviceAt(path: string, own: HostConfig, all: HostConfig): Advice[] {
  const isOwn = [own.classes, own.maxSlotPerHost, own.maxSlotPerIp].some((value) => value !== undefined);
  if (all.classes === undefined || !isOwn) return [];
  return [
    ...lonelyDefault(path, own),
    ...unusedSlots(path, all),
    ...Object.entries(all.classes).flatMap(([name, { ceiling }]) =>
      ceiling === undefined ? [] : ceilingAdvice(path, name, ceiling, all),
    ),
  ];
}

function ceilingAdvice(path: string, name: string, ceiling: number, all: HostConfig): Advice[] {
  const { maxSlotPerHost: slots = 0, maxSlotPerIp: perBucket = 0 } = all;
  const found = `\`${path}.classes.${name}.ceiling\` (${ceiling})`;
  return [
    ...adviceIf(
      ceiling > slots,
      "LIMITS_CONFLICT",
      `${found} is above \`maxSlotPerHost\` (${slots})`,
      "the limit of the class is never reached, so the class can hold all slots of the host",
      "Lower `ceiling`, or remove it.",
    ),
    ...adviceIf(
      ceiling < perBucket && perBucket <= slots,
      "LIMITS_CONFLICT",
      `${found} is below \`maxSlotPerIp\` (${perBucket})`,
      `a bucket never reaches its limit in this class, and a request of ${perBucket} slots is refused there`,
      "Raise `ceiling`, or lower `maxSlotPerIp`.",
    ),
  ];
}

function lonelyDefault(path: string, { classes = {} }: HostConfig): Advice[] {
  const names = Object.keys(classes);
  const { weight, floor } = classes[DEFAULT_CLASS] ?? {};
  return adviceIf(
    names.length === 1 && names[0] === DEFAULT_CLASS && (weight !== undefined || floor !== undefined),
    "LIMITS_CONFLICT",
    `\`${path}.classes\` has no class besides \`${DEFAULT_CLASS}\``,
    "all requests are of one class, so its `weight` and `floor` have no effect",
    "Add the other classes, or remove `classes`.",
  );
}

/** Requests without a class are of `DEFAULT_CLASS`, which has no ceiling unless it is listed. */
function unusedSlots(path: string, { classes = {}, maxSlotPerHost: slots = 0 }: HostConfig): Advice[] {
  const most = Object.values({ [DEFAULT_CLASS]: {}, ...classes }).reduce(
    (sum: number, { ceiling }: { readonly ceiling?: number | undefined }) =>
      sum + (ceiling ?? Number.POSITIVE_INFINITY),
    0,
  );
  return adviceIf(
    most < slots,
    "LIMITS_CONFLICT",
    `the ceilings of \`${path}.classes\` sum up to ${most}, less than \`maxSlotPerHost\` (${slots})`,
    `${slots - most} of the slots are never used`,
    "Raise a `ceiling`, or lower `maxSlotPerHost`.",
  );
}
