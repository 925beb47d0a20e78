import { DEFAULT_CLASS, type HostConfig } from "@slotkeeper/protocol";
import { type Advice, conflictIf } from "./advice.ts";

/** One level of the configuration: all hosts, or an override. A conflict is reported at the level that sets one of its keys. */
export interface Level {
  readonly path: string;
  /** The keys that this level sets. */
  readonly own: HostConfig;
  /** The keys that are in force at it. */
  readonly all: HostConfig;
}

/** Classes that are valid, but of which a limit has no effect, or more effect than its author may expect. */
export function classAdvice({ path, own, all }: Level): Advice[] {
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
    ...conflictIf(
      ceiling > slots,
      `${found} is above \`maxSlotPerHost\` (${slots})`,
      "the limit of the class is never reached, so the class can hold all slots of the host",
      "Lower `ceiling`, or remove it.",
    ),
    ...conflictIf(
      ceiling < perBucket && perBucket <= slots,
      `${found} is below \`maxSlotPerIp\` (${perBucket})`,
      `a bucket never reaches its limit in this class, and a request of ${perBucket} slots is refused there`,
      "Raise `ceiling`, or lower `maxSlotPerIp`.",
    ),
  ];
}

function lonelyDefault(path: string, { classes = {} }: HostConfig): Advice[] {
  const names = Object.keys(classes);
  const { weight, floor } = classes[DEFAULT_CLASS] ?? {};
  return conflictIf(
    names.length === 1 && names[0] === DEFAULT_CLASS && (weight !== undefined || floor !== undefined),
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
  return conflictIf(
    most < slots,
    `the ceilings of \`${path}.classes\` sum up to ${most}, less than \`maxSlotPerHost\` (${slots})`,
    `${slots - most} of the slots are never used`,
    "Raise a `ceiling`, or lower `maxSlotPerHost`.",
  );
}
