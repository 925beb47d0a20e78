import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The files that take half a minute or more. If one of them starts last, the other workers wait for it. */
const SLOW = [
  "chaos.pg.test.ts",
  "python.test.ts",
  "whole-system.sim.test.ts",
  "pages.spec.ts",
  "client.test.ts",
  "kills.test.ts",
];

const isSlow = ({ moduleId }: TestSpecification) => SLOW.some((name) => moduleId.endsWith(`/${name}`));

/** Starts the slow files first, so that all workers end at about the same time. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}
