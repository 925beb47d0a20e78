import { defineConfig } from "vitest/config";
import { conditions } from "./vitest.conditions.ts";

// Pure tests: no server, no database, no browser, no other process. `npm run test:quick` runs them, and mutation testing a part of them.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/{core,queue,protocol}/test/**/*.test.ts"],
    exclude: ["**/*.pg.test.ts", "**/upload-server.test.ts", "packages/core/test/threads/**"],
    maxWorkers: 2,
    testTimeout: 30_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
  },
});
