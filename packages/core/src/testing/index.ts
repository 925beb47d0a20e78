/** `slotkeeper/testing`: virtual time, and a guard that checks that a test leaves nothing behind. */
export { FakeClock, FakeTimer, settled } from "./fake-clock.ts";
export { LeakGuard, type LeakTracked } from "./leak-guard.ts";
