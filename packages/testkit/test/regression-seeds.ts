/** Seeds whose histories once broke an invariant, and what they found. They run on every change. */
export const REGRESSION_SEEDS: readonly { readonly seed: number; readonly found: string }[] = [
  {
    seed: 1,
    found: "an instance asleep on a session that another had delivered asked the store for ever",
  },
  { seed: 248, found: "an answer that took longer than the lease handed out a lease that was over" },
  { seed: 448, found: "a breaker that closed by itself was noticed only at the next poll" },
  { seed: 463, found: "the end of a slot whose bucket had nobody left was not scheduled" },
  { seed: 570, found: "a free slot was not offered on after its candidate had ended while the store decided" },
  { seed: 866, found: "at a hot host a slot that ended by itself idled while the quota was spent" },
  { seed: 2895, found: "after a clock was set ahead, what was scheduled waited for the timer armed before" },
];
