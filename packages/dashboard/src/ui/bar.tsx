import { count } from "../format.ts";

interface BarProps {
  /** From 0 to 1; more counts as 1. */
  readonly share: number;
  readonly isFull?: boolean;
}

export function Bar({ share, isFull = false }: BarProps) {
  return (
    <span class="bar" aria-hidden="true">
      <i data-full={isFull} style={{ width: `${Math.min(1, share) * 100}%` }} />
    </span>
  );
}

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
