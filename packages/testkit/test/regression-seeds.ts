/** Seeds whose histories once broke an invariant, and what they found. They run on every change. */
export const REGRESSION_SEEDS: readonly { readonly seed: number; readonly found: string }[] = [
  { seed: 19, found: "the waiters of a dead instance kept a host forever if no other session waited" },
  { seed: 26, found: "undoing a record that was never there reset the shared bucket" },
  {
    seed: 27,
    found: "a slot released with a minimum hold stayed idle until the next beat of the instance whose client waited",
  },
  { seed: 30, found: "fences were given out again after a failover" },
  { seed: 60, found: "an instance that gave up a session took back the slot another had delivered" },
  { seed: 79, found: "a timer whose delay was too small to move the clock fired forever" },
  { seed: 534, found: "a session was throttled, its client got `pending` and was granted later: two ends" },
  {
    seed: 814,
    found: "no instance counted an end that another instance committed while the session's own was on its way",
  },
  { seed: 271, found: "a poll was never answered: another instance had taken its session's slot over" },
  { seed: 1569, found: "a session that a poll found at its deadline was counted by no instance" },
  { seed: 7164, found: "a session that its client cancelled after its instance gave it up was counted twice" },
  { seed: 8345, found: "an instance with two copies of a session took back the slot another had delivered" },
  { seed: 3476, found: "a poll that was decided after its session's deadline took the slot from the client" },
  { seed: 1883, found: "a read's answer was applied to a book that a notice had changed meanwhile" },
];
