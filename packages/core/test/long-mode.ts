/** How often a property is tried: `SLOTKEEPER_LONG=1` tries fifty times as hard. */
export function runs(count: number): number {
  return process.env["SLOTKEEPER_LONG"] === "1" ? count * 50 : count;
}
