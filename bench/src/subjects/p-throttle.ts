import pThrottle from "p-throttle";
import type { Subject, Work } from "../subject.ts";
import { ratesOnly } from "./rates-only.ts";

export const subject: Subject = {
  id: "p-throttle",
  safety: ["abort"],
  lacks: ratesOnly,
  makeRated: ({ limit, perMs }) => {
    const run = pThrottle({ limit, interval: perMs })((work: Work) => work());
    return { run: (work) => run(work) };
  },
};
