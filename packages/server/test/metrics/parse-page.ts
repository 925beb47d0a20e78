export interface Series {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: string;
  readonly series: Series[];
}

export interface Page {
  readonly families: ReadonlyMap<string, Family>;
  readonly value: (name: string, labels?: Record<string, string>) => number;
}

const SERIES = /^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[\d.e+-]+|\+Inf|NaN)$/;

/** Reads the text format strictly: a line that does not fit, a repeated family or a repeated series is an error. */
export function parsePage(text: string): Page {
  const families = new Map<string, Family>();
  const seen = new Set<string>();
  let open: Family | undefined;
  let help = "";
  if (!text.endsWith("\n")) throw new Error("The page does not end with a line's end");
  for (const line of text.slice(0, -1).split("\n")) {
    const [, kindOf, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kindOf === "HELP") help = rest;
    else if (kindOf === "TYPE") {
      if (families.has(name)) throw new Error(`${name} is exposed twice`);
      open = { name, help, kind: rest, series: [] };
      families.set(name, open);
    } else {
      const series = seriesOf(line);
      const isOwn =
        series.name === open?.name || (open?.kind === "histogram" && series.name.startsWith(`${open.name}_`));
      if (open === undefined || !isOwn) throw new Error(`${series.name} stands under ${open?.name}`);
      const id = line.slice(0, line.lastIndexOf(" "));
      if (seen.has(id)) throw new Error(`${id} is exposed twice`);
      seen.add(id);
      open.series.push(series);
    }
  }
  const all = [...families.values()].flatMap(({ series }) => series);
  return {
    families,
    value(name, labels = {}) {
      const found = all.find(
        (one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
      );
      if (found === undefined) throw new Error(`There is no ${name} ${JSON.stringify(labels)}`);
      return found.value;
    },
  };
}

function seriesOf(line: string): Series {
  const [, name = "", labels = "", value = ""] = SERIES.exec(line) ?? [];
  if (name === "") throw new Error(`Not a line of the format: ${line}`);
  const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = "", text = ""]) => [
    label,
    text.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped)),
  ]);
  return {
    name,
    labels: Object.fromEntries(pairs) as Record<string, string>,
    value: Number(value.replace("+Inf", "Infinity")),
  };
}
