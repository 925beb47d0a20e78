import { createRequire } from "node:module";
import type { Subject, Work } from "../subject.ts";
import { mapOf } from "./map-of.ts";

type Release = () => void;
interface AwaitSemaphore {
  acquire(): Promise<Release>;
  use(work: Work): Promise<unknown>;
}

const require = createRequire(import.meta.url);
// The package ships its TypeScript source as its types, and that source does not compile under this project's options.
const { Semaphore } = require("await-semaphore") as {
  Semaphore: new (slots: number) => AwaitSemaphore;
};

const call = (release: Release): void => release();

export const subject: Subject = {
  id: "await-semaphore",
  safety: ["owner-safe release"],
  lacks: {
    tryAcquire: "no try, only acquire",
    signal: "takes no AbortSignal",
    timeout: "no timeout",
    renew: "no time to live for a held slot",
  },
  make: (slots) => {
    const semaphore = new Semaphore(slots);
    return { acquire: () => semaphore.acquire(), release: call, run: (work) => semaphore.use(work) };
  },
  makeKeyed: () =>
    mapOf(
      () => new Semaphore(1),
      (semaphore) => semaphore.acquire(),
      call,
    ),
};
