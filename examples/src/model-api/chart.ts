/** The chart: requests at a time (the limit and what was tried), what was used, and what was refused. */
import type { Hour, Minute } from "./hour.ts";

const WIDTH = 860;
const LEFT = 60;
const PLOT = 640;

interface Panel {
  readonly title: string;
  readonly top: number;
  readonly height: number;
  readonly most: number;
  readonly step: number;
}

interface Line {
  readonly name: string;
  readonly color: string;
  readonly values: readonly number[];
}

const y = ({ top, height, most }: Panel, value: number): number => top + height * (1 - Math.min(value, most) / most);

function drawLine(panel: Panel, { values, color }: Line): string {
  const points = values.map((value, at) => {
    const x = LEFT + ((at + 0.5) / values.length) * PLOT;
    return `${x.toFixed(1)},${y(panel, value).toFixed(1)}`;
  });
  return `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="1.8"/>`;
}

function drawPanel(panel: Panel, lines: readonly Line[]): string[] {
  const marks = Array.from({ length: Math.floor(panel.most / panel.step) + 1 }, (_, at) => at * panel.step);
  const grid = marks.map((mark) => {
    const at = y(panel, mark).toFixed(1);
    const rule = `<line x1="${LEFT}" x2="${LEFT + PLOT}" y1="${at}" y2="${at}" stroke="#e2e2e2"/>`;
    return `${rule}<text x="${LEFT - 8}" y="${at}" dy="4" text-anchor="end">${mark}</text>`;
  });
  const names = lines.map(
    ({ name, color }, at) =>
      `<text x="${LEFT + PLOT + 10}" y="${panel.top + 14 + at * 18}" fill="${color}">${name}</text>`,
  );
  const title = `<text x="${LEFT}" y="${panel.top - 10}" font-weight="bold">${panel.title}</text>`;
  return [title, ...grid, ...lines.map((line) => drawLine(panel, line)), ...names];
}

export function drawChart(limiter: Hour, retries: Hour): string {
  const of = (hour: Hour, value: (minute: Minute) => number): readonly number[] => hour.minutes.map(value);
  const used = (minute: Minute): number => minute.used * 100;
  const refused = (minute: Minute): number => (minute.refused / (minute.answered + minute.refused)) * 100;
  const both = (value: (minute: Minute) => number): Line[] => [
    { name: "Limiter", color: "#0b6bcb", values: of(limiter, value) },
    { name: "p-limit + retry", color: "#e07b00", values: of(retries, value) },
  ];
  const capacity = { name: "capacity", color: "#777", values: of(limiter, (minute) => minute.capacity) };
  const at = { height: 130, most: 120 };
  const panels = [
    drawPanel({ ...at, title: "Requests at a time", top: 40, step: 20 }, [capacity, ...both((minute) => minute.slots)]),
    drawPanel({ ...at, title: "Used of the limit that binds [%]", top: 220, step: 20 }, both(used)),
    drawPanel({ ...at, title: "Refused by the service [%]", top: 400, most: 30, step: 5 }, both(refused)),
  ];
  const minutes = Array.from({ length: 7 }, (_, index) => {
    const x = LEFT + (index / 6) * PLOT;
    return `<text x="${x.toFixed(1)}" y="552" text-anchor="middle">${index * 10} min</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} 570" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="570" fill="#fff"/>`,
    ...panels.flat(),
    ...minutes,
    "</svg>",
    "",
  ].join("\n");
}
