import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { colourOf } from "./chart-colours.ts";
import { scheme } from "./scheme.ts";

interface Plot {
  readonly height: number;
  /** Made again when this or the colour scheme changes; else only the data is. */
  readonly shape: string;
  readonly data: uPlot.AlignedData;
  readonly options: PlotOptions;
}

/** Colours are those the element has. */
export type PlotOptions = (element: HTMLDivElement) => Omit<uPlot.Options, "width" | "height" | "padding" | "legend">;

/** Keeps a chart in the element: as wide as it, in the colours of the present scheme, with the newest data. */
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
