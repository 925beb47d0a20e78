import { SlotClient } from "@slotkeeper/client";
import type { OpenGate } from "../gate.ts";

export const openSlotkeeper: OpenGate = async (url, work) => {
  const keeper = new SlotClient({ url, maxWaitMs: 60_000 });
  return {
    async run(job) {
      const { user, tenant, estimate } = job;
      const request = {
        hostname: "api.example",
        bucket: tenant,
        ...(process.env["NO_KEYS"] ? {} : { keys: { user, tenant } }),
        cost: { tokens: estimate },
      };
      const slot = await keeper.acquire(request);
      await slot.release({ used: { tokens: await work(job) } });
    },
  };
};
