import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { conditions } from "./vitest.conditions.ts";
import { pure } from "./vitest.quick.config.ts";
import { SlowFirst } from "./vitest.slow-first.ts";

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // Where the global set-up runs.
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    // A build, and a port that starts a database when a test asks for one.
    globalSetup: ["packages/testkit/src/fleet/build-command.ts", "packages/testkit/src/postgres/global-setup.ts"],
    // Most tests with real processes, databases and browsers wait for these, not for a core. With one worker per core the
    // whole run takes 8 minutes on two cores, of which they are idle for half.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: SlowFirst },
    // Only for tests that hang: beside other work, one may take minutes.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
    projects: [
      { extends: true, test: { name: "pure", ...pure } },
      {
        extends: true,
        test: {
          name: "whole",
          include: [
            ...pure.exclude,
            "packages/!(core|queue|protocol)/test/**/*.test.ts",
            "**/test/**/*.spec.ts",
            "examples/test/**/*.test.ts",
          ],
        },
      },
    ],
  },
});
