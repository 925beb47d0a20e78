import { signal } from "@preact/signals";
import type { ServiceInstances } from "@slotkeeper/protocol";
import { useEffect } from "preact/hooks";
import { read } from "../api/call.ts";
import { count, duration, seconds, visible } from "../format.ts";
import { link } from "../model/connection.ts";
import { ShortId } from "../ui/name.tsx";

type Instance = ServiceInstances["instances"][number];

const EVERY_MS = 3_000;
/** Instances send a beat at least every 10 seconds. */
const LATE_MS = 15_000;
const fleet = signal<ServiceInstances | undefined>(undefined);
const problem = signal("");

export function InstancesPage() {
  useEffect(() => {
    const stop = new AbortController();
    const load = () => {
      if (link.peek().phase === "live") void loadFleet(stop.signal);
    };
    const timer = setInterval(load, EVERY_MS);
    const unsubscribe = link.subscribe(load);
    return () => {
      clearInterval(timer);
      unsubscribe();
      stop.abort();
    };
  }, []);
  const known = fleet.value;
  return (
    <section class="stack">
      <h1>Instances</h1>
      {problem.value === "" ? null : <p class="banner bad">The list could not be read: {problem.value}</p>}
      {known === undefined ? <p class="loading">Loading the instances…</p> : <Fleet known={known} />}
    </section>
  );
}

async function loadFleet(signal: AbortSignal): Promise<void> {
  try {
    fleet.value = await read<ServiceInstances>("/instances", signal);
    problem.value = "";
  } catch (error) {
    if (!signal.aborted && link.peek().phase === "live") problem.value = (error as Error).message;
  }
}

function Fleet({ known: { instances, hasDrift, isFleet } }: { known: ServiceInstances }) {
  const usual = mostCommon(instances.map(({ configHash = "" }) => configHash));
  return (
    <>
      {hasDrift ? (
        <p class="banner bad" role="status">
          Not all instances run with the same limits. Those marked “differs” need the same configuration, or a refresh.
        </p>
      ) : null}
      <p class="quiet">
        {isFleet
          ? "Every instance reports to the store every 10 seconds."
          : "The memory store serves one instance. With PostgreSQL, all instances of the fleet are listed here."}
      </p>
      <div class="card table-scroll">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Instance</th>
              <th scope="col">State</th>
              <th scope="col" class="not-on-phone">
                Address
              </th>
              <th scope="col" class="not-on-phone">
                Version
              </th>
              <th scope="col" class="not-on-phone">
                Configuration
              </th>
              <th scope="col" class={limitsClass(hasDrift)}>
                Limits
              </th>
              <th scope="col" class="number">
                Running for
              </th>
              <th scope="col" class="number not-on-phone">
                Open polls
              </th>
              <th scope="col" class="number">
                Waiting
              </th>
            </tr>
          </thead>
          <tbody>
            {instances.map((one) => (
              <Row key={one.instance} one={one} isUsual={(one.configHash ?? "") === usual} hasDrift={hasDrift} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Row({ one, isUsual, hasDrift }: { one: Instance; isUsual: boolean; hasDrift: boolean }) {
  const isLate = one.seenAgoMs > LATE_MS;
  return (
    <tr>
      <td>
        <bdi class="name">{visible(one.instance)}</bdi>
        {one.isThis ? <span class="quiet"> (this one)</span> : null}
      </td>
      <td>
        <span class={isLate ? "badge breaker-open" : "badge load-idle"}>
          {isLate ? `silent for ${seconds(one.seenAgoMs)}` : "alive"}
        </span>
      </td>
      <td class="not-on-phone">{visible(one.address ?? "–")}</td>
      <td class="not-on-phone">{visible(one.version ?? "–")}</td>
      <td class="not-on-phone">{visible(one.configVersion ?? "–")}</td>
      <td class={limitsClass(hasDrift)}>
        {hasDrift ? (
          <span class={isUsual ? "badge quiet" : "badge breaker-open"}>{isUsual ? "same" : "differs"}</span>
        ) : (
          <ShortId id={one.configHash ?? "–"} />
        )}
      </td>
      <td class="number">{one.upMs === undefined ? "–" : duration(one.upMs)}</td>
      <td class="number not-on-phone">{count(one.heldPolls ?? 0)}</td>
      <td class="number">{count(one.sessions ?? 0)}</td>
    </tr>
  );
}

/** On a phone, the limits are shown only if they differ. */
function limitsClass(hasDrift: boolean): string {
  return hasDrift ? "" : "not-on-phone";
}

function mostCommon(values: readonly string[]): string {
  const counts = Map.groupBy(values, (value) => value);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "";
}
