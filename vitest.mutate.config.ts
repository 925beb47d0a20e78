import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import quick from "./vitest.quick.config.ts";

const isSlow = ({ moduleId }: TestSpecification): boolean =>
  /(\.prop|\.sim|abort-every-step|peer-faults)\.test\.ts$/.test(moduleId);

/** Long tests last: an example usually finds a change in a fraction of their time, and the first failure ends the run. */
class ExamplesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return [...files.filter((file) => !isSlow(file)), ...files.filter(isSlow)];
  }
}

// The pure tests that scripts/mutate.mjs names, for hundreds of short runs in one thread each.
export default defineConfig({
  ...quick,
  test: {
    ...quick.test,
    include: process.env["SLOTKEEPER_MUTATE_TESTS"]?.split(",") ?? [],
    // A run has a thread of its own. In it the files share their modules, which saves most of its start.
    isolate: false,
    sequence: { sequencer: ExamplesFirst },
    // Changes that make a call wait for ever are common. No test takes a tenth of this time on a quiet machine.
    testTimeout: 8_000,
    // Threads take the flags of their process.
    execArgv: [],
  },
});
