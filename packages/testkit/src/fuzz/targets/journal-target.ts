import { FairQueue } from "@slotkeeper/queue";
import { JournalCorruptError, JournalFormatError, JournalPathError } from "@slotkeeper/server";
import { type AppendFile, type JournalDisk, openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { FakeClock } from "slotkeeper/testing";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget, ownMemory } from "../fuzz-target.ts";
import { damaged } from "../odd-values.ts";

const BATCH = 50;
const HOSTS = ["a.example", "b.example", "c.example"];
const SLOTS = 2;

/** A journal in memory. Only its content matters here. */
class BytesDisk implements JournalDisk {
  content: Uint8Array | undefined;

  constructor(content?: Uint8Array) {
    this.content = content;
  }

  read(): Promise<Uint8Array | undefined> {
    return Promise.resolve(this.content);
  }

  prepare(content: Uint8Array) {
    return Promise.resolve({
      commit: (): Promise<AppendFile> => {
        this.content = content;
        return Promise.resolve({
          append: (bytes: Uint8Array) => {
            this.content = Buffer.concat([this.content ?? new Uint8Array(), bytes]);
            return Promise.resolve();
          },
          check: () => Promise.resolve(),
          close: () => Promise.resolve(),
        });
      },
    });
  }
}

async function openOn(disk: BytesDisk, clock: FakeClock) {
  const opened = await openJournaledMemoryStore({
    path: "journal",
    disk,
    clock,
    // Of the machine, it would add the time that the run takes to the time of the store.
    uptime: async () => ({ boot: "one start of the machine", ms: clock.now() }),
    newTokenKey: () => "key",
  });
  const queue = new FairQueue({
    store: opened.store,
    // As the service does: with another clock than the store's, all commits would be refused.
    clock: opened.clock,
    newSessionId: nameMaker("session"),
    newSecret: nameMaker("secret"),
    instance: "one",
    config: { maxSlotPerHost: SLOTS, maxSlotPerIp: -1 },
  });
  return { ...opened, queue };
}

function nameMaker(prefix: string): () => string {
  let made = 0;
  return () => `${prefix}-${made++}-${"x".repeat(24)}`;
}

/** A journal with grants, waiters, releases and a snapshot. */
async function goodJournal(): Promise<Uint8Array> {
  const clock = new FakeClock(1e12);
  const disk = new BytesDisk();
  const { queue, close } = await openOn(disk, clock);
  for (let turn = 0; turn < 12; turn++) {
    const host = HOSTS[turn % HOSTS.length] as string;
    const asked = queue.begin({ host, bucket: `b${turn % 4}`, waitMs: 10 });
    await clock.advanceAsync(20);
    const answer = await asked;
    if (answer.result === "granted" && turn % 3 === 0) queue.release({ slotToken: answer.slotToken, status: 200 });
    await clock.advanceAsync(1);
  }
  await close();
  return disk.content as Uint8Array;
}

const REFUSALS = [JournalCorruptError, JournalFormatError, JournalPathError];

async function tryOne(random: Random, good: Uint8Array): Promise<void> {
  const clock = new FakeClock(1e12 + 1_000);
  const bytes = damaged(random, good);
  const input = Buffer.from(bytes).toString("latin1");
  try {
    const { queue, close } = await openOn(new BytesDisk(bytes), clock);
    for (const host of HOSTS) {
      const slots = await grantsOf(queue, clock, host);
      if (slots > SLOTS) throw new FuzzFailure(`${slots} of ${SLOTS} slots of ${host} were granted`, input);
    }
    queue.close();
    await close();
  } catch (error) {
    if (error instanceof FuzzFailure) throw error;
    if (!REFUSALS.some((refusal) => error instanceof refusal)) {
      throw new FuzzFailure(`Expected the journal to be read or refused, got ${String(error)}`, input, error);
    }
  }
}

/** Asks until no slot is free. */
async function grantsOf(queue: FairQueue, clock: FakeClock, host: string): Promise<number> {
  for (let granted = 0; ; granted++) {
    const asked = queue.begin({ host, bucket: "new", waitMs: 1 });
    await clock.advanceAsync(5);
    if ((await asked).result !== "granted" || granted > SLOTS) return granted;
  }
}

export const journalTarget: FuzzTarget = {
  name: "journal",
  title: "damaged journal files: read up to the damage or refused by name, never more holders than slots",
  batch: BATCH,
  share: 1.8,
  open: async () => {
    const good = await goodJournal();
    return {
      tryBatch: async (random) => {
        for (let at = 0; at < BATCH; at++) await tryOne(random, good);
      },
      memory: ownMemory,
      close: () => Promise.resolve(),
    };
  },
};
