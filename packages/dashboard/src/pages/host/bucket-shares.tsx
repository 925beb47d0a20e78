import { count, duration, plural } from "../../format.ts";
import type { HostState } from "../../model/host-watch.ts";
import { type Share, sharesOf } from "../../model/shares.ts";
import { Headings } from "../../ui/headings.tsx";
import { BucketName } from "../../ui/name.tsx";
import { VirtualRows } from "../../ui/virtual-rows.tsx";

const ROW_HEIGHT = 40;
const POSITIONS_SHOWN = 4;
const COLUMNS = [
  { title: "Bucket", class: "cell-name" },
  { title: "In use", class: "cell-number" },
  { title: "Waiting", class: "cell-number" },
  { title: "Positions", class: "cell-positions cell-extra" },
  { title: "Slot time", class: "cell-number cell-time" },
  { title: "Fair share", class: "cell-number cell-extra" },
  { title: "Against fair share", class: "cell-share" },
];

/** The queue by bucket: positions, and the slot time of each bucket compared with its fair share. */
export function BucketShares({ host }: { host: HostState }) {
  const shares = sharesOf(host);
  if (shares.length === 0) return null;
  return (
    <section class="card rows-card buckets" aria-labelledby="buckets-title">
      <div class="card-head">
        <h2 id="buckets-title">Queue by bucket</h2>
        <p class="quiet">
          {plural(shares.length, "bucket")}. A bucket behind its fair share of slot time goes first; one that was idle
          starts at its fair share.
        </p>
      </div>
      <VirtualRows
        label="Queue by bucket"
        count={shares.length}
        rowHeight={ROW_HEIGHT}
        header={<Headings columns={COLUMNS} />}
        row={(index) => <Cells share={shares[index] as Share} />}
      />
    </section>
  );
}

function Cells({ share: { bucket, usedMs, fairMs, positions } }: { share: Share }) {
  return (
    <>
      <div role="cell" class="cell-name">
        <BucketName bucket={bucket.bucket} />
        {bucket.class === undefined ? null : <span class="quiet"> {bucket.class}</span>}
        {bucket.weight === 1 ? null : <span class="quiet"> weight {bucket.weight}</span>}
      </div>
      <div role="cell" class="cell-number">
        {count(bucket.inFlight)}
      </div>
      <div role="cell" class="cell-number">
        {count(bucket.waiting)}
      </div>
      <div role="cell" class="cell-positions cell-extra">
        <Positions positions={positions} waiting={bucket.waiting} />
      </div>
      <div role="cell" class="cell-number cell-time">
        {duration(usedMs)}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {fairMs === undefined ? "–" : duration(fairMs)}
      </div>
      <div role="cell" class="cell-share">
        {fairMs === undefined ? null : <Difference usedMs={usedMs} fairMs={fairMs} />}
      </div>
    </>
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
