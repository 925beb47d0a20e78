/** `slotkeeper/testing`: virtual time, and a guard that nothing is left behind after a test. */
export { FakeClock, FakeTimer, settled } from "./fake-clock.ts";
export { LeakGuard, type LeakTracked } from "./leak-guard.ts";
