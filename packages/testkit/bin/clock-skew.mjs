// Preloaded into an instance (`node --import`): its clock differs from the machine's by CLOCK_SKEW_MS, as on a machine whose clock
// was set wrong. Timers and durations are not changed: on a real machine they do not depend on the time of day either.
const skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + skewMs] : given));
  }

  static now() {
    return RealDate.now() + skewMs;
  }
};

Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + skewMs });
