import { fileURLToPath } from "node:url";
import { withProgram } from "@slotkeeper/testkit/bundle";
import type { GovernorEvent } from "slotkeeper/transfers";
import { expect, test } from "vitest";
import { outputOf } from "./output-of.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

/**
 * Takes real memory until the limits have fallen to the minimum while 12 uploads are held, gives it back, and waits
 * until they have recovered. Blocks of 48 MB come from the system and go back to it, so that resident memory follows.
 */
const ALLOCATES = `
  import { MediaSlots } from "slotkeeper/transfers";
  const MB = 1024 ** 2;
  const events = [];
  let changed = () => {};
  const slots = new MediaSlots({
    memoryBased: false,
    fallbackGlobalUploads: 12,
    fallbackPerUserUploads: 1,
    availableGb: 0.5,
    governor: { everyMs: 25 },
    onEvent: (event) => {
      if (event.type !== "governed") return;
      events.push(event);
      changed();
    },
  });
  const until = async (condition) => {
    // A governor keeps no process alive: the program has to.
    const alive = setInterval(() => {}, 1000);
    while (!condition()) await new Promise((resolve) => (changed = resolve));
    clearInterval(alive);
  };
  const held = [];
  for (let i = 0; i < 12; i++) held.push(await slots.acquireUpload("user " + i));
  const blocks = [];
  while (process.memoryUsage.rss() < 460 * MB) blocks.push(Buffer.alloc(48 * MB, 1));
  await until(() => slots.config().current.globalUploads === 2);
  const heldAtMinimum = { inUse: slots.config().use.uploads.inUse, released: held.some((slot) => slot.released) };
  const state = slots.config().governor;
  blocks.length = 0;
  global.gc();
  for (const slot of held) slot.release();
  await until(() => slots.config().current.globalUploads === 12);
  console.log(JSON.stringify({ events, heldAtMinimum, state }));
`;

test("in a real process that allocates, limits fall by halves, evict no holder, and recover step by step", async () => {
  const out = await withProgram({ text: ALLOCATES, folder }, (program) => outputOf(program, [], ["--expose-gc"]));
  const { events, heldAtMinimum, state } = JSON.parse(out) as {
    events: GovernorEvent[];
    heldAtMinimum: unknown;
    state: unknown;
  };
  const changes = events.filter(({ from, to }) => from.globalUploads !== to.globalUploads);
  const uploads = changes.map(({ to }) => to.globalUploads);
  const lowest = uploads.indexOf(2);
  expect(uploads.slice(0, lowest + 1)).toEqual([6, 3, 2]);
  expect(uploads.slice(lowest + 1)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(changes.slice(0, lowest + 1).every(({ governor }) => (governor.load ?? 0) > 0.85)).toBe(true);
  expect(changes.slice(lowest + 1).every(({ governor }) => (governor.load ?? 1) < 0.7)).toBe(true);
  expect(heldAtMinimum).toEqual({ inUse: 12, released: false });
  expect(state).toMatchObject({ pressure: "high", limitBytes: 512 * 1024 ** 2 });
});

test("a process that forgot to close its slots ends all the same", async () => {
  const text = `
    import { MediaSlots, TransferSlots } from "slotkeeper/transfers";
    const slots = new MediaSlots({ availableGb: 8, governor: {} });
    (await slots.acquireUpload("ann")).release();
    (await new TransferSlots().acquireUpload("ann")).release();
    console.log("done");
  `;
  expect(await withProgram({ text, folder }, (program) => outputOf(program))).toBe("done\n");
});
