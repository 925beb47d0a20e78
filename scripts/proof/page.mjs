// Writes the reliability page from results. A section without results is left out.
import { METHODS } from "./methods.mjs";

/** `sums`: results.json. `found`: found.json. `planted`: which method finds which planted bug, or undefined. */
export function pageOf({ sums, found, planted }) {
  const tried = METHODS.map((method) => ({ ...method, sums: sums.filter(({ kind }) => kind === method.kind) }));
  const methods = tried.filter((method) => method.sums.length > 0);
  const sections = [INTRODUCTION, triedSection(methods), ...methods.flatMap(partSection), plantedSection(planted)];
  return `${[...sections, foundSection(found), notCovered(methods), basis(sums)].filter(Boolean).join("\n\n")}\n`;
}

const INTRODUCTION = `# Reliability

This page shows how we look for bugs, how much each method has tried, what it has found, and what no method covers. Each row names the
command that repeats it. \`npm run reliability\` writes the page from recorded results; a test compares it with them.`;

function triedSection(methods) {
  if (methods.length === 0) return "";
  const rows = methods.map(({ name, command, tries, sums }) => [
    name,
    tries,
    triedOf(sums.filter((sum) => !isPlanted(sum))),
    sums.every(({ isPassed }) => isPassed) ? "passed" : "**failed**",
    `\`${command}\``,
  ]);
  return `## What was tried\n\n${table(["method", "what it does", "tried", "verdict", "command"], rows)}`;
}

/** For example "10,000 seeds in 21 minutes; 3 seeds with violations". */
function triedOf(sums) {
  const total = (of) => sums.reduce((sum, result) => sum + (of(result) ?? 0), 0);
  const seconds = total((result) => result.seconds);
  const time =
    sums[0].unit === "minutes" || seconds === 0
      ? ""
      : ` in ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} minutes`}`;
  const names = [...new Set(sums.flatMap(({ figures }) => Object.keys(figures)))].filter((name) => name !== "goal");
  const figures = names.map((name) => `${count(total((result) => result.figures[name]))} ${name}`);
  return [`${count(total(({ amount }) => amount))} ${sums[0].unit}${time}`, ...figures].join("; ");
}

/** The parts of methods that have several. */
function partSection({ kind, name, sums }) {
  const rowsOf = PARTS[kind];
  if (rowsOf === undefined) return [];
  return [`### ${name}, part by part\n\n${rowsOf(sums)}`];
}

const PARTS = {
  model: (sums) => {
    const [planted, whole] = [sums.filter(isPlanted), sums.filter((sum) => !isPlanted(sum))];
    const rows = whole.map(({ part, amount, isPassed }) => [
      `\`${part}\``,
      count(amount),
      isPassed ? "no error" : "**error**",
    ]);
    const found = planted.filter(({ isPassed }) => isPassed).length;
    return `In \`offers\`, LIMIT means never more leases and offers than slots, OWNER means one owner for each slot and one slot for each session, and
SERVED means that every client that stays gets its slot, under weak fairness. In \`dispatcher\`, no thread sleeps forever, one thread is
inside, and threads are served in order. Of ${planted.length} bugs that were planted in the models, SPIN finds ${found}.

${table(["model and bounds", "states", "result"], rows)}`;
  },
  mutation: (sums) =>
    table(
      ["code", "changes", "found by a test", "goal"],
      sums.map(({ part, amount, figures }) => [
        part,
        count(amount),
        `${((100 * (amount - figures.survived)) / Math.max(1, amount)).toFixed(1)} %`,
        `${figures.goal} %`,
      ]),
    ),
  fuzz: (sums) =>
    table(
      ["input", "tried", "handled badly"],
      sums.map(({ part, amount, isPassed }) => [part, count(amount), isPassed ? "none" : "**yes**"]),
    ),
};

/** A run of a model with a planted bug stops at the bug, so its states do not count. */
const isPlanted = ({ part = "" }) => part.includes("BREAK_");

function plantedSection(rows) {
  if (rows === undefined || rows.length === 0) return "";
  const names = Object.keys(rows[0]).filter((name) => typeof rows[0][name] === "object");
  const cell = (finding) => (finding.isFound ? `${finding.rule}` : "not found");
  const body = rows.map((row) => [row.bug, ...names.map((name) => cell(row[name]))]);
  return `## Planted bugs\n\nBugs that we planted on purpose, and the rule by which each method finds them.\n\n${table(["bug", ...names], body)}`;
}

function foundSection(found) {
  const nameOf = (kind) => METHODS.find((method) => method.kind === kind).name;
  const summary = [...countsOf(found)].map(([kind, number]) => `${nameOf(kind)}: ${number}`).join(". ");
  const rows = found.map(({ method, found: what, commit }) => [nameOf(method), what, `\`${commit}\``]);
  return `## What was found\n\nBugs of our own code, each with the commit that fixed it or added its test. ${summary}.\n\n${table(["method", "bug", "commit"], rows)}`;
}

function countsOf(found) {
  const counts = new Map();
  for (const { method } of found) counts.set(method, (counts.get(method) ?? 0) + 1);
  return counts;
}

function notCovered(methods) {
  const rows = methods.map(({ name, misses }) => [name, misses]);
  const shown = rows.length === 0 ? "" : `\n\n${table(["method", "what it cannot find"], rows)}`;
  return `## What is not covered

No method here covers several machines with real clocks and a real network between them, a failover of PostgreSQL to a replica that lost
commits (it is only simulated), damaged disks, or runs of more than an hour. The [failure model](explanation/failure-model.md) says what is
guaranteed when a part fails.${shown}`;
}

/** Where and when it ran. */
function basis(sums) {
  if (sums.length === 0) return "";
  const runs = new Map();
  for (const { kind, commit, at, machine } of sums) {
    const key = [METHODS.find((method) => method.kind === kind)?.name, commit, machine].join("|");
    runs.set(key, at > (runs.get(key) ?? "") ? at : runs.get(key));
  }
  const rows = [...runs].map(([key, at]) => {
    const [name, commit, machine] = key.split("|");
    return [name, commitText(commit), at.slice(0, 10), machine];
  });
  return `## Commits and machines\n\n${table(["method", "commit", "date", "machine"], rows)}`;
}

function commitText(commit) {
  const [id, isChanged] = commit.split("-");
  return isChanged === undefined ? `\`${id}\`` : `\`${id}\` with changes`;
}

const count = (value) => Math.round(value).toLocaleString("en");

function table(head, rows) {
  const cells = [head, ...rows].map((row) => row.map((cell) => `${cell}`.replaceAll("|", "\\|")));
  const widths = head.map((_, at) => Math.max(...cells.map((row) => row[at].length)));
  const line = (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`;
  const [first, ...others] = cells;
  return [line(first), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...others.map(line)].join("\n");
}
