import { count } from "../format.ts";

/** Slots in use of the limit, as numbers and as a bar. */
export function UseBar({ inFlight, limit }: { inFlight: number; limit: number | undefined }) {
  const share = limit === undefined || limit === 0 ? 0 : Math.min(1, inFlight / limit);
  return (
    <span class="use">
      <span class="use-numbers">
        {count(inFlight)} <span class="quiet">of {limit ? count(limit) : "?"}</span>
      </span>
      <span class="bar" aria-hidden="true">
        <i data-full={share >= 1} style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
