/** The chart: the memory of both servers above; below, the limit and the uploads in use of the server with limits. */
import type { Sample } from "./server.ts";

const WIDTH = 860;
const LEFT = 60;
const PLOT = 660;

interface Panel {
  readonly top: number;
  readonly height: number;
  readonly most: number;
  readonly untilMs: number;
}

type Value = (sample: Sample) => number;

const x = ({ untilMs }: Panel, atMs: number): number => LEFT + (atMs / untilMs) * PLOT;
const y = ({ top, height, most }: Panel, value: number): number => top + height * (1 - value / most);

/** With `isStepped`, drawn as a staircase, because a limit stays until it is changed. */
function line(panel: Panel, samples: readonly Sample[], value: Value, color: string, isStepped = false): string {
  const points = samples.flatMap((sample, i) => {
    const now = [x(panel, sample.atMs), y(panel, value(sample))];
    const before = samples[i - 1];
    return isStepped && before !== undefined ? [[now[0] ?? 0, y(panel, value(before))], now] : [now];
  });
  const text = points.map((point) => point.map((number) => number.toFixed(1)).join(",")).join(" ");
  return `<polyline points="${text}" fill="none" stroke="${color}" stroke-width="1.8"/>`;
}

function axes(panel: Panel, title: string, step: number): string {
  const marks = Array.from({ length: Math.floor(panel.most / step) + 1 }, (_, i) => i * step);
  const grid = marks.map((mark) => {
    const at = y(panel, mark).toFixed(1);
    const rule = `<line x1="${LEFT}" x2="${LEFT + PLOT}" y1="${at}" y2="${at}" stroke="#e2e2e2"/>`;
    return `${rule}<text x="${LEFT - 8}" y="${at}" dy="4" text-anchor="end">${mark}</text>`;
  });
  return [`<text x="${LEFT}" y="${panel.top - 10}" font-weight="bold">${title}</text>`, ...grid].join("\n");
}

const seconds = (panel: Panel): string =>
  Array.from({ length: Math.floor(panel.untilMs / 1000) + 1 }, (_, i) => {
    const at = x(panel, i * 1000).toFixed(1);
    return `<text x="${at}" y="${panel.top + panel.height + 18}" text-anchor="middle">${i} s</text>`;
  }).join("");

const label = (at: number, color: string, text: string): string =>
  `<text x="${LEFT + PLOT + 10}" y="${at.toFixed(1)}" dy="4" fill="${color}">${text}</text>`;

const rss: Value = (sample) => sample.rssMb;

/** Where the line ends. */
function endOf(panel: Panel, samples: readonly Sample[], value: Value): number {
  const last = samples.at(-1);
  return last === undefined ? panel.top : y(panel, value(last));
}

export function drawChart(limited: readonly Sample[], unlimited: readonly Sample[], budgetMb: number): string {
  const all = [...limited, ...unlimited];
  const untilMs = Math.max(...all.map(({ atMs }) => atMs));
  const mostMb = Math.ceil(Math.max(budgetMb, ...all.map(({ rssMb }) => rssMb)) / 100) * 100;
  const mostSlots = Math.max(...limited.map(({ limit, inUse }) => Math.max(limit, inUse))) + 1;
  const memory: Panel = { top: 40, height: 240, most: mostMb, untilMs };
  const uploads: Panel = { top: 330, height: 120, most: mostSlots, untilMs };
  const budgetY = y(memory, budgetMb).toFixed(1);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} 490" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="490" fill="#fff"/>`,
    axes(memory, "Resident memory [MB]", Math.ceil(mostMb / 600) * 100),
    `<line x1="${LEFT}" x2="${LEFT + PLOT}" y1="${budgetY}" y2="${budgetY}" stroke="#b00020" stroke-dasharray="6 4"/>`,
    label(Number(budgetY), "#b00020", `budget ${budgetMb} MB`),
    line(memory, unlimited, rss, "#e07b00"),
    label(endOf(memory, unlimited, rss), "#e07b00", "without limits"),
    line(memory, limited, rss, "#0b6bcb"),
    label(endOf(memory, limited, rss), "#0b6bcb", "with limits"),
    axes(uploads, "Uploads of the server with limits", Math.ceil(mostSlots / 6)),
    line(uploads, limited, (sample) => sample.inUse, "#8fbce6"),
    line(uploads, limited, (sample) => sample.limit, "#0b6bcb", true),
    label(uploads.top + 12, "#0b6bcb", "limit"),
    label(uploads.top + 30, "#5d9bd6", "in use"),
    seconds(uploads),
    "</svg>",
    "",
  ].join("\n");
}
