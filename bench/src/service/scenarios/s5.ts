import { median } from "../../timing.ts";
import { Audit } from "../load/audit.ts";
import { cpuMs } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { atMost, type LoadContext, type Scenario } from "../scenario.ts";

const AT_A_TIME = 64;
const HOSTS = 2000;

/**
 * `hostOf` names the host of the n-th cycle. Returns milliseconds per cycle, of the clock and of the server's
 * processor.
 */
async function cycles(
  context: LoadContext,
  audit: Audit,
  clients: readonly SlotClient[],
  hostOf: (n: number) => string,
) {
  let next = 0;
  const startedAt = performance.now();
  const cpuBefore = cpuMs(context.serverPid);
  const loop = async (client: SlotClient, at: number) => {
    while (next < HOSTS) {
      const host = hostOf(next++);
      const slot = await client.acquire(host, `b${at}`, () => false);
      if (slot === undefined) return;
      const hold = audit.granted(host, `b${at}`, slot.fence, 0);
      audit.releasing(hold);
      await client.release(slot.slotToken);
    }
  };
  await Promise.all(clients.map((client, at) => loop(client, at)));
  return { wall: (performance.now() - startedAt) / HOSTS, cpu: (cpuMs(context.serverPid) - cpuBefore) / HOSTS };
}

export const s5: Scenario = {
  id: "S5",
  title: "2,000 hosts once each, 64 at a time, against 2,000 cycles of one host",
  subjects: ["slotkeeper", "postgres"],
  fairQueue: { maxSlotPerHost: AT_A_TIME, maxSlotPerIp: -1, maxWaitersPerHost: 0 },
  async load(context) {
    const audit = new Audit({ slots: AT_A_TIME, slotsPerBucket: AT_A_TIME });
    const clients = await Promise.all(
      Array.from({ length: AT_A_TIME }, () => SlotClient.open(context.url, context.waiting)),
    );
    await cycles(context, audit, clients, () => "one.example");
    const many: { wall: number; cpu: number }[] = [];
    const one: { wall: number; cpu: number }[] = [];
    for (let turn = 0; turn < (context.isShort ? 2 : 5); turn++) {
      many.push(await cycles(context, audit, clients, (n) => `h${n}.turn${turn}.example`));
      one.push(await cycles(context, audit, clients, () => "one.example"));
    }
    for (const client of clients) client.close();
    const of = (turns: typeof many, kind: "wall" | "cpu") => median(turns.map((turn) => turn[kind]));
    return {
      "many hosts µs/cycle": of(many, "wall") * 1000,
      "one host µs/cycle": of(one, "wall") * 1000,
      "many ÷ one": of(many, "wall") / of(one, "wall"),
      "many ÷ one, CPU": of(many, "cpu") / of(one, "cpu"),
      violations: audit.violations,
    };
  },
  goals: [
    atMost("slotkeeper", "many ÷ one", 1.2),
    atMost("slotkeeper", "violations", 0),
    atMost("postgres", "violations", 0),
  ],
};
