/** The names of the colours charts draw with: registered properties in `styles/tokens.css`, so a canvas can read them. */
export type ChartColour = "use" | "limit" | "wait" | "grant" | "median" | "slow" | "timeout" | "paused" | "full";

export function colourOf(element: Element, name: ChartColour | "text" | "grid"): string {
  return getComputedStyle(element).getPropertyValue(`--chart-${name}`).trim();
}

/** The same colour, see-through: what lies under a line. */
export function faint(colour: string): string {
  return `color-mix(in srgb, ${colour} 16%, transparent)`;
}
