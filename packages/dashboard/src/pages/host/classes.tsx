import { type ClassState, unitsOf } from "@slotkeeper/protocol";
import { count, plural } from "../../format.ts";
import type { HostState, SessionState } from "../../model/host-watch.ts";
import { DEFAULT_CLASS } from "../../model/shares.ts";
import { Card } from "../../ui/card.tsx";

interface ClassesProps {
  readonly host: HostState;
  /** The session whose wait is explained below. */
  readonly session: SessionState | undefined;
}

/** The classes of the host as bars: slots in use, floor, ceiling and share. */
export function Classes({ host: { classes = [], limit = 0 }, session }: ClassesProps) {
  if (classes.length === 0) return null;
  const awaited = session?.blockedBy === "class" ? (session.class ?? DEFAULT_CLASS) : undefined;
  return (
    <Card name="classes" title="Classes" note={`${plural(classes.length, "class", "classes")}, in the whole fleet`}>
      <ul class="meters">
        {classes.map((one) => (
          <ClassMeter key={one.name} of={one} slots={limit} isAwaited={one.name === awaited} />
        ))}
      </ul>
    </Card>
  );
}

function ClassMeter({ of, slots, isAwaited }: { of: ClassState; slots: number; isAwaited: boolean }) {
  const { name, weight, floor, ceiling, inFlight, waiting, share } = of;
  const most = Math.max(1, ceiling ?? slots);
  return (
    <li class="meter" data-awaited={isAwaited}>
      <p class="meter-head">
        <span class="meter-name">{name}</span>
        {weight === 1 ? null : <span class="quiet">weight {unitsOf(weight)}</span>}
        {isAwaited ? (
          <span class="badge load-queueing" title="The session below waits for a slot of this class">
            awaited
          </span>
        ) : null}
        <span class="meter-left">
          {count(inFlight)}
          <span class="quiet">{ceiling === undefined ? " in use" : ` of ${count(ceiling)} in use`}</span>
        </span>
      </p>
      <span class="bar bar-marked" aria-hidden="true">
        <i style={{ width: `${Math.min(1, inFlight / most) * 100}%` }} />
        {floor === 0 ? null : <b style={{ left: `${Math.min(1, floor / most) * 100}%` }} />}
      </span>
      <p class="cell-times">
        <span>
          {floor === 0 ? "no floor" : `floor ${count(floor)}`},{" "}
          {ceiling === undefined ? "no ceiling" : `ceiling ${count(ceiling)}`}
          {share === undefined ? null : `, share ${unitsOf(share)}`}
        </span>
        <span>{waiting === 0 ? "none waiting" : `${count(waiting)} waiting`}</span>
      </p>
    </li>
  );
}
