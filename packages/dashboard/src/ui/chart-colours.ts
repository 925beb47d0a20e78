/** The names of the chart colours: registered properties in `styles/tokens.css`, so that a canvas can read them. */
export type ChartColour = "use" | "limit" | "wait" | "grant" | "median" | "slow" | "timeout" | "throttled" | "full";

export function colourOf(element: Element, name: ChartColour | "text" | "grid"): string {
  return getComputedStyle(element).getPropertyValue(`--chart-${name}`).trim();
}

/** The same colour, transparent, for the area below a line. */
export function faint(colour: string): string {
  return `color-mix(in srgb, ${colour} 16%, transparent)`;
}
