import type { Case, Workload } from "../workload.ts";
import { budgets } from "./budgets.ts";
import { w1, w1r, w1s } from "./w1.ts";
import { w2 } from "./w2.ts";
import { w3 } from "./w3.ts";
import { w4 } from "./w4.ts";
import { w4s } from "./w4s.ts";
import { w5 } from "./w5.ts";
import { w6 } from "./w6.ts";
import { w7 } from "./w7.ts";
import { w8 } from "./w8.ts";

export const workloads: readonly Workload[] = [w1, w1s, w1r, w2, w3, w4, w4s, w5, w6, w7, w8, ...budgets];

export function caseById(id: string): Case {
  const found = workloads.flatMap((workload) => workload.cases).find((candidate) => candidate.id === id);
  if (found === undefined) throw new TypeError(`Expected the id of a workload or case, got ${id}.`);
  return found;
}
