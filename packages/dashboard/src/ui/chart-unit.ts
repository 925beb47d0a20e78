import { count, duration, rate } from "../format.ts";

/** The scale of an axis: its labels, its possible steps, and its smallest maximum. */
export interface Unit {
  readonly format: (value: number | null | undefined) => string;
  readonly steps: readonly number[];
  readonly least: number;
}

/** 1, 2, 5 and their multiples of ten, from this power of ten on. */
function rounded(from: number): number[] {
  return Array.from({ length: 30 }, (_, index) => [1, 2, 5][index % 3]! * 10 ** (from + Math.floor(index / 3)));
}

function orDash(format: (value: number) => string): Unit["format"] {
  return (value) => (value === null || value === undefined ? "–" : format(value));
}

export const COUNT: Unit = { format: orDash(count), steps: rounded(0), least: 4 };
export const RATE: Unit = { format: orDash(rate), steps: rounded(-2), least: 1 };
export const DURATION: Unit = {
  format: orDash(duration),
  steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3],
  least: 10,
};
