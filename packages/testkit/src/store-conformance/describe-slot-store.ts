import type { HostPolicy } from "@slotkeeper/queue";
import { afterAll, beforeAll, describe } from "vitest";
import { breakerCases } from "./breaker-cases.ts";
import { leaseCases } from "./lease-cases.ts";
import { orderCases } from "./order-cases.ts";
import { poolCases } from "./pool-cases.ts";
import { readingCases } from "./reading-cases.ts";
import { sessionCases } from "./session-cases.ts";
import { type ConformanceOptions, HostUnderTest, type StoreUnderTest } from "./store-under-test.ts";

/** Makes a host with these limits on the store under test. */
export type NewHost = (limits?: Partial<HostPolicy>) => HostUnderTest;

/** The promises S1–S8 of the port, for any implementation. The titles cite them. */
export function describeSlotStore(name: string, options: ConformanceOptions): void {
  describe(`${name} keeps the promises of a slot store`, () => {
    let subject: StoreUnderTest;
    beforeAll(async () => {
      subject = await options.open();
    });
    afterAll(async () => {
      await subject.close();
    });
    const newHost: NewHost = (limits) => new HostUnderTest(subject, limits);
    leaseCases(newHost);
    sessionCases(newHost);
    poolCases(newHost);
    orderCases(newHost);
    breakerCases(newHost, options.skip ?? {});
    readingCases(newHost);
  });
}
