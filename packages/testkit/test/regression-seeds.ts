/** Seeds whose histories once broke an invariant, and what they found. They run on every change. */
export const REGRESSION_SEEDS: readonly { readonly seed: number; readonly found: string }[] = [
  {
    seed: 1,
    found: "an instance asleep on a session that another had delivered asked the store for ever",
  },
];
