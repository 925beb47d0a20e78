import { encodeFirstLine, encodeFrame, FrameDamage, readFrames } from "@slotkeeper/server/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const bodies = fc.array(
  fc
    .array(fc.jsonValue(), { minLength: 1, maxLength: 4 })
    .map((values) => values.map((v) => `${JSON.stringify(v)}\n`).join("")),
  { minLength: 1, maxLength: 6 },
);

function fileOf(all: readonly string[]) {
  const frames = all.map((body, at) => encodeFrame({ number: at + 1, at: 1000 + at, body }));
  const ends = frames.map((_, at) => encodeFirstLine().length + Buffer.concat(frames.slice(0, at + 1)).length);
  return { file: Buffer.concat([encodeFirstLine(), ...frames]), ends };
}

describe("the format of the journal", () => {
  test("written frames are read back, and a file that is cut anywhere gives its complete frames (FRAME1)", () => {
    fc.assert(
      fc.property(bodies, (all) => {
        const { file, ends } = fileOf(all);
        for (let cut = ends[0] as number; cut <= file.length; cut++) {
          const whole = ends.filter((end) => end <= cut).length;
          const { frames, tornBytes } = readFrames(file.subarray(0, cut));
          expect(frames.map(({ body }) => body)).toEqual(all.slice(0, whole));
          expect(tornBytes).toBe(cut - (ends[whole - 1] as number));
        }
      }),
      { numRuns: 15 },
    );
  });

  test("a cut inside the first frame cannot come from a crash, and is an error (FRAME1)", () => {
    const { file, ends } = fileOf(['{"a":1}\n', '{"b":2}\n']);
    expect(readFrames(file.subarray(0, 0))).toEqual({ frames: [], tornBytes: 0 });
    for (let cut = 1; cut < (ends[0] as number); cut++) {
      expect(() => readFrames(file.subarray(0, cut))).toThrow(FrameDamage);
    }
  });

  test("a changed byte is an error that names the frame it lies in (FRAME2)", () => {
    fc.assert(
      fc.property(bodies, fc.nat(), fc.integer({ min: 0, max: 7 }), (all, where, bit) => {
        const { file, ends } = fileOf(all);
        const at = where % file.length;
        const changed = Buffer.from(file);
        changed[at] = (changed[at] as number) ^ (1 << bit);
        fc.pre(changed[at] !== 0);
        const starts = [encodeFirstLine().length, ...ends];
        const damaged = starts.findLast((start) => start <= at) ?? 0;
        expect(() => readFrames(changed)).toThrow(expect.objectContaining({ offset: damaged }));
      }),
      { numRuns: 500 },
    );
  });

  test("a frame that is missing, repeated or out of place is an error (FRAME3)", () => {
    const [one, two, three] = [1, 2, 3].map((number) => encodeFrame({ number, at: 1, body: `${number}\n` })) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    for (const wrong of [[one, three], [one, two, two], [two], [one, three, two]]) {
      expect(() => readFrames(Buffer.concat([encodeFirstLine(), ...wrong]))).toThrow(/should/);
    }
  });

  test("a last frame with a sector that never reached the disk is torn; with frames after it, it is damaged", () => {
    const long = `${JSON.stringify("x".repeat(3000))}\n`;
    const { file, ends } = fileOf(['{"a":1}\n', long, '{"c":3}\n']);
    const [first, second] = ends as [number, number, number];
    const emptied = Buffer.from(file);
    emptied.fill(0, 1024, 1536);
    expect(readFrames(emptied.subarray(0, second))).toMatchObject({ frames: { length: 1 }, tornBytes: second - first });
    expect(() => readFrames(emptied)).toThrow(FrameDamage);
    // The sector of the header: its length is unknown, so the reader must search for the next frame.
    const headless = Buffer.from(file).fill(0, first, second - 5);
    expect(readFrames(headless.subarray(0, second)).frames).toHaveLength(1);
    expect(() => readFrames(headless)).toThrow(FrameDamage);
  });

  test("a file of another program is refused", () => {
    expect(() => readFrames(Buffer.from("{}\n"))).toThrow('does not begin with "slotkeeper-journal 2"');
    expect(() => readFrames(Buffer.from("slotkeeper-journal 1\n=1"))).toThrow(FrameDamage);
  });
});
