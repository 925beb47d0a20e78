import type { ServiceHistory } from "@slotkeeper/protocol";
import { useEffect, useMemo } from "preact/hooks";
import { count, duration, plural, rate } from "../format.ts";
import { hosts, type Totals, totals } from "../model/fleet.ts";
import { latest, lengthOf, ratePerSecond, sumOf, watchHistory } from "../model/history.ts";
import { LineChart } from "../ui/line-chart.tsx";
import { Loading } from "../ui/loading.tsx";
import { Tile } from "../ui/tile.tsx";
import { COUNT, DURATION, RATE } from "../ui/use-plot.ts";
import { BusiestHosts } from "./busiest-hosts.tsx";
import { FirstRequest } from "./first-request.tsx";

export function OverviewPage() {
  const [history, close] = useMemo(() => watchHistory(), []);
  useEffect(() => close, []);
  const [known, past] = [totals.value, history.value];
  if (known === undefined || past === undefined) return <Loading text="Loading the overview…" />;
  return (
    <>
      <h1>Overview</h1>
      <FirstRequest created={known.created} />
      {known.created === 0 && hosts.value.size === 0 ? null : <Numbers known={known} past={past} />}
    </>
  );
}

function Numbers({ known, past }: { known: Totals; past: ServiceHistory }) {
  return (
    <>
      <BusiestHosts />
      <div class="tiles tiles-five">
        <SlotsTile inFlight={known.inFlight} limit={known.limit} past={past} note={plural(hosts.value.size, "host")} />
        <WaitingTile waiting={known.waiting} past={past} note="in the whole fleet" />
        <GrantsTile past={past} />
        <WaitsTile past={past} />
        <RejectedTile past={past} />
      </div>
    </>
  );
}

interface TileProps {
  readonly past: ServiceHistory;
  readonly note: string;
}

export function SlotsTile({ inFlight, limit, past, note }: TileProps & { inFlight: number; limit: number }) {
  return (
    <Tile title="Slots in use" value={count(inFlight)} unit={`of ${count(limit)}`} note={note}>
      <LineChart
        label="Slots in use"
        past={past}
        unit={COUNT}
        lines={[
          { label: "in use", colour: "use", values: past.inFlight, isFilled: true },
          { label: "limit", colour: "limit", values: past.limit, isDashed: true },
        ]}
      />
    </Tile>
  );
}

export function WaitingTile({ waiting, past, note }: TileProps & { waiting: number }) {
  return (
    <Tile title="Waiting" value={count(waiting)} unit={waiting === 1 ? "session" : "sessions"} note={note}>
      <LineChart
        label="Sessions waiting"
        past={past}
        unit={COUNT}
        lines={[{ label: "waiting", colour: "wait", values: past.waiters, isFilled: true }]}
      />
    </Tile>
  );
}

export function GrantsTile({ past }: { past: ServiceHistory }) {
  const perSecond = past.granted.map((granted) => granted / (past.stepMs / 1000));
  return (
    <Tile
      title="Grants"
      value={rate(ratePerSecond(past.granted, past.stepMs))}
      unit="per second"
      note={`${count(sumOf(past.granted))} in ${lengthOf(past)}`}
    >
      <LineChart
        label="Grants per second"
        past={past}
        unit={RATE}
        lines={[{ label: "granted", colour: "grant", values: complete(perSecond), isFilled: true }]}
      />
    </Tile>
  );
}

export function WaitsTile({ past }: { past: ServiceHistory }) {
  const [half, most] = [latest(past.waitP50Ms, past.stepMs), latest(past.waitP95Ms, past.stepMs)];
  return (
    <Tile
      title="Wait for a slot"
      value={half === undefined ? "–" : duration(half)}
      unit="median"
      note={most === undefined ? "no grants in the last minute" : `95 % waited less than ${duration(most)}`}
    >
      <LineChart
        label="Wait before a grant"
        past={past}
        unit={DURATION}
        lines={[
          { label: "median (p50)", colour: "median", values: past.waitP50Ms },
          { label: "slowest 5 % (p95)", colour: "slow", values: past.waitP95Ms },
        ]}
      />
    </Tile>
  );
}

/** The reasons are the results that callers get. */
function RejectedTile({ past }: { past: ServiceHistory }) {
  const reasons = [
    { label: "timed out", colour: "timeout", values: past.timeout },
    { label: "breaker open", colour: "throttled", values: past.throttled },
    { label: "queue full", colour: "full", values: past.overloaded },
  ] as const;
  const steps = Math.round(60_000 / past.stepMs);
  const per = duration(past.stepMs);
  const lately = reasons.reduce((sum, { values }) => sum + sumOf(values.slice(-steps)), 0);
  const all = reasons.map(({ label, values }) => `${count(sumOf(values))} ${label}`);
  return (
    <Tile
      title="Rejected"
      value={count(lately)}
      unit={`${lately === 1 ? "session" : "sessions"} in the last minute`}
      note={`In ${lengthOf(past)}: ${all.join(", ")}`}
    >
      <LineChart
        label={`Rejected sessions, in each ${per}`}
        per={per}
        past={past}
        unit={COUNT}
        lines={reasons.map((line) => ({ ...line, values: complete(line.values) }))}
      />
    </Tile>
  );
}

/** The last step is not complete, so its count would always look like a decrease. */
function complete(values: readonly number[]): (number | null)[] {
  return [...values.slice(0, -1), null];
}
