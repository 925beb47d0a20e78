import { afterAll, beforeAll, describe } from "vitest";
import { beatCases } from "./beat-cases.ts";
import { clockCases } from "./clock-cases.ts";
import { forgetCases } from "./forget-cases.ts";
import { HostUnderTest } from "./host-under-test.ts";
import { limitCases } from "./limit-cases.ts";
import { pushCases } from "./push-cases.ts";
import { readingCases } from "./reading-cases.ts";
import { repeatCases } from "./repeat-cases.ts";
import { reservationCases } from "./reservation-cases.ts";
import { restartCases } from "./restart-cases.ts";
import { roundTripCases } from "./round-trip-cases.ts";
import type { ConformanceOptions, StoreUnderTest } from "./store-under-test.ts";
import { swapCases } from "./swap-cases.ts";
import { tailCases } from "./tail-cases.ts";

/** Makes a host on the store under test. */
export type NewHost = () => Promise<HostUnderTest>;

/** The promises P1 to P8 of `HostStore`, for any implementation. The titles cite them. */
export function describeHostStore(name: string, options: ConformanceOptions): void {
  describe(`${name} keeps the promises of a host store`, () => {
    let subject: StoreUnderTest;
    beforeAll(async () => {
      subject = await options.open();
    });
    afterAll(async () => {
      await subject.close();
    });
    const newHost: NewHost = () => HostUnderTest.on(subject);
    swapCases(newHost);
    tailCases(newHost);
    roundTripCases(newHost);
    limitCases(newHost);
    repeatCases(newHost);
    clockCases(newHost);
    reservationCases(newHost);
    beatCases(newHost);
    readingCases(newHost);
    forgetCases(newHost);
    pushCases(newHost, options.skip?.push);
    restartCases(newHost, () => subject, options.skip?.restart);
  });
}
