import type { Scenario } from "../scenario.ts";
import { l1 } from "./l1.ts";
import { s1 } from "./s1.ts";
import { s1WithBy } from "./s1-with.ts";
import { s2 } from "./s2.ts";
import { s3 } from "./s3.ts";
import { s4 } from "./s4.ts";
import { s5 } from "./s5.ts";
import { s6 } from "./s6.ts";
import { s8 } from "./s8.ts";

export const scenarios: readonly Scenario[] = [s1, s2, s3, s4, s5, s6, s8, l1];

export function scenarioById(id: string): Scenario {
  const found = s1WithBy(id) ?? scenarios.find((scenario) => scenario.id === id);
  if (found !== undefined) return found;
  throw new RangeError(`Expected one of ${scenarios.map((scenario) => scenario.id).join(", ")}, got ${id}`);
}
