// Changes that no test finds, by the reason why that is acceptable. `npm run mutate -- --survivors` prints them in this form.

export const EXPLAINED = {
  "The condition is only there for the types, or another one decides before it": [
    'keyed-slots.ts: typeof gate === "number" → true',
  ],
  "The boundary is never met: times are rounded down, so that the two sides are never equal": [
    "keyed-slots.ts: gate <= sinceAt → gate < sinceAt",
  ],
};
