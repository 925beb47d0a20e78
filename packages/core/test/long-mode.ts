/** How hard properties are tried: `SLOTKEEPER_LONG=1` tries fifty times as hard. */
const factor = process.env["SLOTKEEPER_LONG"] === "1" ? 50 : 1;

export function runs(count: number): { numRuns: number } {
  return { numRuns: count * factor };
}

/** For the test around it. */
export const patience = { timeout: 60_000 * factor };
