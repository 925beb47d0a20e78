import { judge, type Sample } from "@slotkeeper/testkit/soak";
import { expect, test } from "vitest";

const samples = (figure: string, valueAt: (minute: number) => number): Sample[] =>
  Array.from({ length: 60 }, (_, minute) => ({ atSeconds: 60 * (minute + 1), figures: { [figure]: valueAt(minute) } }));

const warmUp = 600;
const MEMORY = "memory of service 1, MB";

test("memory that grows while the service warms up, and is level afterwards, passes", () => {
  expect(
    judge(
      samples(MEMORY, (minute) => Math.min(200, 100 + 20 * minute)),
      warmUp,
    ).misses,
  ).toEqual([]);
});

test("memory that goes up and down with the collection of garbage passes", () => {
  expect(
    judge(
      samples(MEMORY, (minute) => 200 + 30 * (minute % 3)),
      warmUp,
    ).misses,
  ).toEqual([]);
});

test("a leak of a megabyte every two minutes is found", () => {
  expect(
    judge(
      samples(MEMORY, (minute) => 150 + minute / 2),
      warmUp,
    ).misses,
  ).toEqual(["memory of service 1, MB grew from 157 to 177"]);
});

test("a table that keeps a row for every session is found", () => {
  expect(
    judge(
      samples("rows of slotkeeper_record", (minute) => 3000 * minute),
      warmUp,
    ).misses,
  ).toHaveLength(1);
});

test("a run that ended before it could show anything does not pass", () => {
  expect(judge(samples(MEMORY, () => 1).slice(0, 12), warmUp).misses).toHaveLength(1);
});
