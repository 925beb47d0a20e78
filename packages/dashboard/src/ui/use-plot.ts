import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { count, duration, rate } from "../format.ts";
import { scheme } from "./scheme.ts";

interface Plot {
  readonly height: number;
  /** The chart is created again if this or the colour scheme changes; otherwise only its data is replaced. */
  readonly shape: string;
  readonly data: uPlot.AlignedData;
  readonly options: PlotOptions;
}

/** The colours are those of the element. */
export type PlotOptions = (element: HTMLDivElement) => Omit<uPlot.Options, "width" | "height" | "padding" | "legend">;

/** Keeps a chart in the element: with its width, the colours of the current scheme, and the newest data. */
export function usePlot({ height, shape, data, options }: Plot) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const size = () => ({ width: element.clientWidth, height });
    const fixed = { ...size(), padding: [8, 12, 0, 0] as [number, number, number, number], legend: { show: false } };
    const made = new uPlot({ ...fixed, ...options(element) }, data, element);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize(size()));
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
    };
  }, [shape, scheme.value]);
  useEffect(() => plot.current?.setData(data), [data]);
  return box;
}

/** The names of the chart colours in `styles/tokens.css`. */
export type ChartColour = "use" | "limit" | "wait" | "grant" | "median" | "slow" | "timeout" | "throttled" | "full";

/** The colour as the present scheme has it: a canvas can read neither a variable nor `light-dark`. */
export function colourOf(element: HTMLElement, name: ChartColour | "text" | "grid"): string {
  element.style.color = `var(--chart-${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}

/** The same colour, transparent, for the area below a line. */
export function faint(colour: string): string {
  return `color-mix(in srgb, ${colour} 16%, transparent)`;
}

/** The axis below the chart, which has no grid. */
export function labelAxis(element: HTMLDivElement): uPlot.Axis {
  return { ...axisStyle(element), grid: { show: false } };
}

/** The axis of the values. */
export function valueAxis(element: HTMLDivElement, { format, steps }: Unit): uPlot.Axis {
  return {
    ...axisStyle(element),
    // As wide as its longest label.
    size: (_plot, values) => Math.max(20, ...(values ?? []).map((text) => text.length * 7 + 12)),
    gap: 6,
    incrs: [...steps],
    grid: { stroke: colourOf(element, "grid"), width: 1 },
    values: (_plot, values) => values.map(format),
  };
}

function axisStyle(element: HTMLDivElement): uPlot.Axis {
  return { stroke: colourOf(element, "text"), font: "12px system-ui, sans-serif", ticks: { show: false } };
}

/** From 0 to a little above the highest value. */
export function valueScale({ least }: Unit): uPlot.Scale {
  return { range: (_plot, _low, high) => [0, Math.max(least, (high ?? 0) * 1.1)] };
}

/** The scale of an axis: its labels, its possible steps, and its smallest maximum. */
export interface Unit {
  readonly format: (value: number | null | undefined) => string;
  readonly steps: readonly number[];
  readonly least: number;
}

/** 1, 2, 5 and their multiples of ten, from this power of ten on. */
function rounded(from: number): number[] {
  return Array.from({ length: 30 }, (_, index) => [1, 2, 5][index % 3]! * 10 ** (from + Math.floor(index / 3)));
}

function orDash(format: (value: number) => string): Unit["format"] {
  return (value) => (value === null || value === undefined ? "–" : format(value));
}

export const COUNT: Unit = { format: orDash(count), steps: rounded(0), least: 4 };
export const RATE: Unit = { format: orDash(rate), steps: rounded(-2), least: 1 };
export const DURATION: Unit = {
  format: orDash(duration),
  steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3],
  least: 10,
};
