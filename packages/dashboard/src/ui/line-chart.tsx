import type { ServiceHistory } from "@slotkeeper/protocol";
import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { timeOfDay } from "../format.ts";
import { lengthOf } from "../model/history.ts";
import {
  type ChartColour,
  colourOf,
  faint,
  labelAxis,
  type PlotOptions,
  type Unit,
  usePlot,
  valueAxis,
  valueScale,
} from "./use-plot.ts";

interface Line {
  readonly label: string;
  readonly colour: ChartColour;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
}

interface LineChartProps {
  /** Describes the picture for screen readers. */
  readonly label: string;
  /** The time of its steps. */
  readonly past: ServiceHistory;
  readonly lines: readonly Line[];
  readonly unit: Unit;
  /** The time that each value counts, if it is a count over time. */
  readonly per?: string;
}

const HEIGHT = 132;

/** Lines over the last 15 minutes, or since the service started, with the values at the pointer below. */
export function LineChart(props: LineChartProps) {
  const { label, past, lines, unit, per } = props;
  const { at, stepMs } = past;
  const [under, setUnder] = useState<number | undefined>();
  const box = usePlot({
    height: HEIGHT,
    shape: lines.map(({ label, colour }) => `${label}/${colour}`).join(),
    data: useMemo(() => dataOf(props), [at]),
    options: (element) => optionsOf(element, props, setUnder),
  });
  const steps = lines[0]?.values.length ?? 1;
  const time = timeOfDay(at - (steps - 1 - (under ?? steps - 1)) * stepMs);
  return (
    <figure class="chart">
      <div ref={box} class="chart-box" role="img" aria-label={`${label}. ${summary(props)}`} />
      <figcaption class="legend">
        <span>{time}</span>
        {lines.map((line) => (
          <span key={line.label} class="legend-item">
            <i class="swatch" style={{ color: `var(--chart-${line.colour})` }} data-dashed={line.isDashed === true} />
            {line.label} <b>{unit.format(under === undefined ? newest(line) : line.values[under])}</b>
          </span>
        ))}
        {per === undefined ? null : <span>in {per}</span>}
      </figcaption>
    </figure>
  );
}

/** An incomplete step has no count yet, so the previous one is used. */
function newest({ values }: Line): number | null | undefined {
  return values.at(-1) ?? values.at(-2);
}

function summary({ lines, past, unit }: LineChartProps): string {
  const parts = lines.map((line) => {
    const known = line.values.filter((value) => value !== null);
    if (known.length === 0) return `${line.label}: nothing yet`;
    return `${line.label}: now ${unit.format(newest(line))}, highest ${unit.format(Math.max(...known))}`;
  });
  return `Last ${lengthOf(past)}. ${parts.join("; ")}`;
}

function dataOf({ past: { at, stepMs }, lines }: LineChartProps): uPlot.AlignedData {
  const steps = lines[0]?.values.length ?? 0;
  const times = Array.from({ length: steps }, (_, step) => (at - (steps - 1 - step) * stepMs) / 1000);
  return [times, ...lines.map(({ values }) => [...values])];
}

function optionsOf(
  element: HTMLDivElement,
  { lines, unit }: LineChartProps,
  onUnder: (index: number | undefined) => void,
): ReturnType<PlotOptions> {
  return {
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: { y: valueScale(unit) },
    axes: [
      { ...labelAxis(element), size: 24, space: 90, values: timeLabels },
      { ...valueAxis(element, unit), space: 26 },
    ],
    series: [{}, ...lines.map((line) => seriesOf(element, line))],
    hooks: { setCursor: [({ cursor }) => onUnder(cursor.idx ?? undefined)] },
  };
}

/** Without seconds, several labels of a short time would be the same. */
function timeLabels(_plot: uPlot, times: number[], _axis: number, _space: number, step: number): string[] {
  return times.map((time) => (step < 60 ? timeOfDay(time * 1000) : timeOfDay(time * 1000).slice(0, 5)));
}

function seriesOf(element: HTMLDivElement, { label, colour, isFilled, isDashed }: Line): uPlot.Series {
  const stroke = colourOf(element, colour);
  return {
    label,
    stroke,
    width: 2,
    points: { show: false },
    spanGaps: false,
    ...(isFilled === true ? { fill: faint(stroke) } : {}),
    ...(isDashed === true ? { dash: [6, 5], width: 1.5 } : {}),
  };
}
