import { signal } from "@preact/signals";
import type { ServiceInstances } from "@slotkeeper/protocol";
import { useEffect } from "preact/hooks";
import { read } from "../api/call.ts";
import { count, duration, seconds, visible } from "../format.ts";
import { link, whileLive } from "../model/connection.ts";
import { ShortId } from "../ui/name.tsx";
import type { Column } from "../ui/virtual-rows.tsx";

type Instance = ServiceInstances["instances"][number];

const EVERY_MS = 3_000;
/** Instances send a beat at least every 10 seconds. */
const LATE_MS = 15_000;
const fleet = signal<ServiceInstances | undefined>(undefined);
const problem = signal("");

export function InstancesPage() {
  useEffect(() => whileLive(EVERY_MS, (signal) => void loadFleet(signal)), []);
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

function Fleet({ known }: { known: ServiceInstances }) {
  const { instances, hasDrift, isFleet } = known;
  const columns = columnsOf(known);
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
              {columns.map((column) => (
                <th key={column.title} scope="col" class={column.class}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {instances.map((one) => (
              <tr key={one.instance}>
                {columns.map((column) => (
                  <td key={column.title} class={column.class}>
                    {column.cell(one)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function columnsOf({ instances, hasDrift }: ServiceInstances): Column<Instance>[] {
  const usual = mostCommon(instances.map(({ configHash = "" }) => configHash));
  return [
    { title: "Instance", class: "", cell: (one) => <Name one={one} /> },
    { title: "State", class: "", cell: ({ seenAgoMs }) => <State seenAgoMs={seenAgoMs} /> },
    { title: "Address", class: "not-on-phone", cell: ({ address = "–" }) => visible(address) },
    { title: "Version", class: "not-on-phone", cell: ({ version = "–" }) => visible(version) },
    { title: "Configuration", class: "not-on-phone", cell: ({ configVersion = "–" }) => visible(configVersion) },
    {
      title: "Limits",
      // On a phone, they are shown only if they differ.
      class: hasDrift ? "" : "not-on-phone",
      cell: ({ configHash }) =>
        hasDrift ? <Drift isUsual={(configHash ?? "") === usual} /> : <ShortId id={configHash ?? "–"} />,
    },
    { title: "Running for", class: "number", cell: ({ upMs }) => (upMs === undefined ? "–" : duration(upMs)) },
    { title: "Open polls", class: "number not-on-phone", cell: ({ heldPolls = 0 }) => count(heldPolls) },
    { title: "Waiting", class: "number", cell: ({ sessions = 0 }) => count(sessions) },
  ];
}

function Name({ one }: { one: Instance }) {
  return (
    <>
      <bdi class="name">{visible(one.instance)}</bdi>
      {one.isThis ? <span class="quiet"> (this one)</span> : null}
    </>
  );
}

function State({ seenAgoMs }: { seenAgoMs: number }) {
  if (seenAgoMs <= LATE_MS) return <span class="badge load-idle">alive</span>;
  return <span class="badge breaker-open">silent for {seconds(seenAgoMs)}</span>;
}

function Drift({ isUsual }: { isUsual: boolean }) {
  return isUsual ? <span class="badge quiet">same</span> : <span class="badge breaker-open">differs</span>;
}

function mostCommon(values: readonly string[]): string {
  const counts = Map.groupBy(values, (value) => value);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "";
}
