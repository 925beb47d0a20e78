import type { Case, Workload } from "../workload.ts";
import { w1, w1r, w1s } from "./w1.ts";
import { w2 } from "./w2.ts";
import { w5 } from "./w5.ts";

export const workloads: readonly Workload[] = [w1, w1s, w1r, w2, w5];

export function caseById(id: string): Case {
  const found = workloads.flatMap((workload) => workload.cases).find((candidate) => candidate.id === id);
  if (found === undefined) throw new TypeError(`Expected the id of a case, got ${id}.`);
  return found;
}
