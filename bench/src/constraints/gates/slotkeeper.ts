import { SlotClient } from "../../service/load/slot-client.ts";
import type { OpenGate } from "../gate.ts";

/** Each user has a connection. */
export const openSlotkeeper: OpenGate = async (url, work) => {
  const clients = new Map<string, SlotClient>();
  return {
    async run(job) {
      const { user, tenant, estimate } = job;
      const client = clients.get(user) ?? (await SlotClient.open(url, { kind: "held", waitMs: 600_000 }));
      clients.set(user, client);
      const demand = { keys: { user, tenant }, cost: { tokens: estimate } };
      const slot = await client.acquire("api.example", tenant, () => false, demand);
      await client.release(slot?.slotToken ?? "", { used: { tokens: await work(job) } });
    },
  };
};
