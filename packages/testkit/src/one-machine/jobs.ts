/**
 * Commands that write when they start and end into a log, and a judge that reads it: it knows nothing of how the
 * commands were started.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** `background`: work goes on after the command has ended. `closing`: the command closes all that it inherited. */
export type JobKind = "plain" | "background" | "closing";

/** One write for each line, so that no line is torn. The time comes from the shell itself. */
const SCRIPT = `#!/bin/bash
LOG=$1 ID=$2 KIND=$3 SECONDS_LONG=$4
say() { printf '%s %s %s %s\\n' "$1" "$ID" "$EPOCHREALTIME" "$$" >> "$LOG"; }
if [ "$KIND" = closing ]; then
  for FD in /proc/$$/fd/*; do FD=\${FD##*/}; [ "$FD" -le 2 ] || [ "$FD" -eq 255 ] || eval "exec $FD>&-"; done
fi
say S
if [ "$KIND" = background ]; then { sleep "$SECONDS_LONG"; say E; } & exit 0; fi
sleep "$SECONDS_LONG"
say E
`;

interface JobRun {
  readonly id: string;
  readonly pid: number;
  /** In milliseconds, by the wall clock. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
}

export class JobLog {
  readonly #script: string;
  readonly #log: string;
  /** When the harness killed a job, taken before the kill. */
  readonly killedAt = new Map<string, number>();
  #read = 0;
  #rest = "";
  readonly #runs = new Map<string, JobRun>();

  constructor(folder: string) {
    this.#script = join(folder, "job.sh");
    this.#log = join(folder, "jobs.log");
    writeFileSync(this.#script, SCRIPT, { mode: 0o700 });
    writeFileSync(this.#log, "");
  }

  /** The command line of a job. */
  command(id: string, kind: JobKind, seconds: number): string[] {
    return ["/bin/bash", this.#script, this.#log, id, kind, seconds.toFixed(3)];
  }

  /** All jobs that have started, in their order. */
  runs(): JobRun[] {
    const text = this.#rest + readFileSync(this.#log, "utf8").slice(this.#read);
    const lines = text.split("\n");
    this.#read += text.length - this.#rest.length;
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
    return [...this.#runs.values()].sort((a, b) => a.startedAt - b.startedAt);
  }

  run(id: string): JobRun | undefined {
    return this.runs().find((run) => run.id === id);
  }

  /** How many jobs started while `slots` others ran. */
  startsBeyond(slots: number): number {
    return this.#atOnce().filter((running) => running > slots).length;
  }

  /** The largest number of jobs that ran at the same time. */
  mostAtOnce(): number {
    return Math.max(0, ...this.#atOnce());
  }

  /** For each start, in their order, how many jobs ran then. */
  #atOnce(): number[] {
    const moments = this.runs().flatMap(({ startedAt, endedAt, id }) => [
      { at: startedAt, change: 1 },
      { at: endedAt ?? this.killedAt.get(id) ?? Number.POSITIVE_INFINITY, change: -1 },
    ]);
    // At the same microsecond, the end counts first.
    moments.sort((a, b) => a.at - b.at || a.change - b.change);
    let running = 0;
    return moments.flatMap(({ change }) => {
      running += change;
      return change > 0 ? [running] : [];
    });
  }

  #take(line: string): void {
    const [what, id = "", time = "0", pid = "0"] = line.split(" ");
    const at = Number(time) * 1000;
    const known = this.#runs.get(id);
    if (what === "S") this.#runs.set(id, { id, pid: Number(pid), startedAt: at, endedAt: undefined });
    else if (known !== undefined) this.#runs.set(id, { ...known, endedAt: at });
  }
}
