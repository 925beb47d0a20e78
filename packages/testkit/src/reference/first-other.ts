import { DEFAULT_CLASS, type Demand, type DemandDifference } from "@slotkeeper/protocol";

/** The first field in which two demands differ, costs before keys. */
export function firstOther(held: Demand | undefined, given: Demand | undefined): DemandDifference | undefined {
  const [before, after] = [fieldsOf(held), fieldsOf(given)];
  const names = [...before.keys(), ...after.keys()].filter((field) => before.get(field) !== after.get(field));
  const field = names.find((name) => !name.startsWith("keys.")) ?? names[0];
  return field === undefined ? undefined : { field, held: before.get(field), given: after.get(field) };
}

/** Everything that a demand asks for, by the name of the field. */
function fieldsOf({ width = 1, class: named = DEFAULT_CLASS, cost = {}, keys = {} }: Demand = {}) {
  const fields = new Map<string, number | string>([
    ["width", width],
    ["class", named],
  ]);
  for (const [name, amount] of Object.entries(cost)) fields.set(`cost.${name}`, amount);
  for (const [name, value] of Object.entries(keys)) fields.set(`keys.${name}`, value);
  return fields;
}
