/** How many cases a property is tested with: `SLOTKEEPER_LONG=1` multiplies the number by fifty. */
const factor = process.env["SLOTKEEPER_LONG"] === "1" ? 50 : 1;

export function runs(count: number): { numRuns: number } {
  return { numRuns: count * factor };
}

/** The timeout of a test that checks a property. */
export const patience = { timeout: 60_000 * factor };
