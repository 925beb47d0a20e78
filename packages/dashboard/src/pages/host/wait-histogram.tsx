import type { ServiceHistory } from "@slotkeeper/protocol";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { count, duration, plural } from "../../format.ts";
import { sumOf } from "../../model/history.ts";
import { Card } from "../../ui/card.tsx";
import {
  COUNT,
  colourOf,
  faint,
  labelAxis,
  type PlotOptions,
  usePlot,
  valueAxis,
  valueScale,
} from "../../ui/use-plot.ts";

type Waits = ServiceHistory["waits"];

const HEIGHT = 200;

/** The waits of the sessions that were granted a slot in the last 15 minutes. */
export function WaitHistogram({ waits }: { waits: Waits }) {
  const { labels, counts } = useMemo(() => bars(waits), [waits]);
  const box = usePlot({
    height: HEIGHT,
    shape: labels.join(),
    data: useMemo(() => [[...counts.keys()], counts], [counts]),
    options: (element) => optionsOf(element, labels),
  });
  const all = sumOf(waits.counts);
  const summary = labels.map((label, index) => `${label}: ${count(counts[index] ?? 0)}`).join(", ");
  return (
    <Card
      name="histogram"
      title="How long they waited"
      note={`${plural(all, "grant")} at this instance in the last 15 minutes`}
    >
      <div ref={box} class="chart-box histogram" role="img" aria-label={`Grants by wait. ${summary}`} />
    </Card>
  );
}

/** From one bar before the first non-empty bar to one after the last, at least six. */
function bars({ boundsMs, counts }: Waits): { labels: string[]; counts: number[] } {
  const labels = counts.map((_, index) => {
    const bound = boundsMs[index];
    return bound === undefined ? "more" : `≤ ${duration(bound)}`;
  });
  const last = Math.max(5, counts.findLastIndex((value) => value > 0) + 1);
  const first = Math.max(0, Math.min(last - 5, counts.findIndex((value) => value > 0) - 1));
  return { labels: labels.slice(first, last + 1), counts: counts.slice(first, last + 1) };
}

function optionsOf(element: HTMLDivElement, labels: readonly string[]): ReturnType<PlotOptions> {
  const bar = colourOf(element, "wait");
  const { bars: barPaths } = uPlot.paths;
  return {
    cursor: { show: false },
    scales: {
      x: { time: false, range: [-0.6, labels.length - 0.4] },
      y: valueScale(COUNT),
    },
    axes: [
      {
        ...labelAxis(element),
        size: 26,
        splits: labels.map((_, index) => index),
        // On a narrow screen there is room for every second or third label only.
        values: ({ width }, splits) =>
          splits.map((index) => (index % Math.ceil((labels.length * 64) / width) === 0 ? (labels[index] ?? "") : "")),
      },
      valueAxis(element, COUNT),
    ],
    series: [
      {},
      {
        stroke: bar,
        fill: faint(bar),
        width: 1.5,
        points: { show: false },
        ...(barPaths === undefined ? {} : { paths: barPaths({ size: [0.8, 64] }) }),
      },
    ],
  };
}
