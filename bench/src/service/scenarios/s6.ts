import { median } from "../../timing.ts";
import { cpuMs } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { percentile } from "../load/statistics.ts";
import { atMostTimes, type Scenario } from "../scenario.ts";

export const s6: Scenario = {
  id: "S6",
  title: "idle host, one client: from asking to the slot, one round trip",
  subjects: ["bare", "slotkeeper", "journal", "postgres", "postgres-unsynced", "seed-sql"],
  forComparison: ["journal", "postgres-unsynced"],
  isPinned: true,
  fairQueue: {},
  async load(context) {
    const client = await SlotClient.open(context.url, context.waiting);
    const times: number[] = [];
    const cycles: number[] = [];
    // With a disk or a database a cycle takes milliseconds, and uncompiled code hardly matters.
    const isQuick = !context.isShort && (context.subject === "bare" || context.subject === "slotkeeper");
    const rounds = isQuick ? 4000 : 1000;
    // As in S1, warming up ends after a number of cycles. Otherwise uncompiled code would be measured.
    const warmUp = isQuick ? 12_000 : 1000;
    let cpuBefore = 0;
    for (let n = 0; n < warmUp + rounds; n++) {
      if (n === warmUp) cpuBefore = cpuMs(context.serverPid);
      const askedAt = performance.now();
      const slot = await client.acquire("s6.example", "b", () => false);
      times.push((performance.now() - askedAt) * 1000);
      await client.release(slot?.slotToken ?? "");
      cycles.push((performance.now() - askedAt) * 1000);
    }
    const cpu = ((cpuMs(context.serverPid) - cpuBefore) * 1000) / rounds;
    client.close();
    const warm = times.slice(warmUp);
    return {
      "acquire µs": median(warm),
      "acquire p99 µs": percentile(warm, 99),
      "acquire and release µs": median(cycles.slice(warmUp)),
      "server CPU µs/cycle": cpu,
    };
  },
  goals: [
    atMostTimes("slotkeeper", "acquire µs", 1.4, "bare"),
    atMostTimes("postgres", "acquire and release µs", 1, "seed-sql"),
  ],
};
