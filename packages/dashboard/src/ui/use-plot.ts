import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "./chart-colours.ts";
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

/** What all axes have in common. */
export function axisStyle(element: HTMLDivElement) {
  return { stroke: colourOf(element, "text"), font: "12px system-ui, sans-serif", ticks: { show: false } };
}

export function gridStyle(element: HTMLDivElement) {
  return { stroke: colourOf(element, "grid"), width: 1 };
}
