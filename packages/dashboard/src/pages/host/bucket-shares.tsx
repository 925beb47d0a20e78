import { count, duration, plural } from "../../format.ts";
import type { HostState } from "../../model/host-watch.ts";
import { type Share, sharesOf } from "../../model/shares.ts";
import { Card } from "../../ui/card.tsx";
import { BucketName } from "../../ui/name.tsx";
import { type Column, VirtualRows } from "../../ui/virtual-rows.tsx";

const ROW_HEIGHT = 40;
const POSITIONS_SHOWN = 4;
const COLUMNS: readonly Column<Share>[] = [
  {
    title: "Bucket",
    class: "cell-name",
    cell: ({ bucket }) => (
      <>
        <BucketName bucket={bucket.bucket} />
        {bucket.class === undefined ? null : <span class="quiet"> {bucket.class}</span>}
        {bucket.weight === 1 ? null : <span class="quiet"> weight {bucket.weight}</span>}
      </>
    ),
  },
  { title: "In use", class: "cell-number", cell: ({ bucket }) => count(bucket.inFlight) },
  { title: "Waiting", class: "cell-number", cell: ({ bucket }) => count(bucket.waiting) },
  {
    title: "Positions",
    class: "cell-positions cell-extra",
    cell: ({ positions, bucket }) => <Positions positions={positions} waiting={bucket.waiting} />,
  },
  { title: "Slot time", class: "cell-number cell-time", cell: ({ bucket }) => duration(bucket.usedMs) },
  {
    title: "Fair share",
    class: "cell-number cell-extra",
    cell: ({ fairMs }) => (fairMs === undefined ? "–" : duration(fairMs)),
  },
  {
    title: "Against fair share",
    class: "cell-share",
    cell: ({ bucket: { usedMs }, fairMs }) =>
      fairMs === undefined ? null : <Difference usedMs={usedMs} fairMs={fairMs} />,
  },
];

/** The queue by bucket: positions, and the slot time of each bucket compared with its fair share. */
export function BucketShares({ host }: { host: HostState }) {
  const shares = sharesOf(host);
  if (shares.length === 0) return null;
  return (
    <Card
      name="buckets"
      looks="rows-card buckets"
      title="Queue by bucket"
      note={`${plural(shares.length, "bucket")}. A bucket behind its fair share of slot time goes first; one that was idle starts at its fair share.`}
    >
      <VirtualRows
        label="Queue by bucket"
        count={shares.length}
        rowHeight={ROW_HEIGHT}
        columns={COLUMNS}
        row={(index) => shares[index]}
      />
    </Card>
  );
}

function Positions({ positions, waiting }: { positions: readonly number[]; waiting: number }) {
  if (positions.length === 0) return <span class="quiet">–</span>;
  const isMore = Math.max(positions.length, waiting) > POSITIONS_SHOWN;
  return (
    <>
      {positions.slice(0, POSITIONS_SHOWN).map(count).join(", ")}
      {isMore ? ", …" : ""}
    </>
  );
}

/** Left of the middle is behind, right is ahead. The ends are half and one and a half times the fair share. */
function Difference({ usedMs, fairMs }: { usedMs: number; fairMs: number }) {
  const difference = usedMs - fairMs;
  const ratio = fairMs <= 0 ? 0 : Math.max(-1, Math.min(1, difference / fairMs / 0.5));
  const isEven = Math.abs(difference) < 50;
  const words = isEven ? "even" : `${duration(Math.abs(difference))} ${difference < 0 ? "behind" : "ahead"}`;
  return (
    <span class="difference">
      <span class="difference-bar" aria-hidden="true">
        <i
          data-behind={difference < 0}
          style={{ left: `${50 + Math.min(0, ratio) * 50}%`, width: `${Math.abs(ratio) * 50}%` }}
        />
      </span>
      <span class="difference-words">{words}</span>
    </span>
  );
}
