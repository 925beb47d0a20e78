import { count } from "../format.ts";
import { Bar } from "./bar.tsx";

/** Slots in use of the limit, as numbers and as a bar. */
export function UseBar({ inFlight, limit }: { inFlight: number; limit: number | undefined }) {
  const share = limit ? inFlight / limit : 0;
  return (
    <span class="use">
      <span class="use-numbers">
        {count(inFlight)} <span class="quiet">of {limit ? count(limit) : "?"}</span>
      </span>
      <Bar share={share} isFull={share >= 1} />
    </span>
  );
}
