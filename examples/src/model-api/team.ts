// One process of a fleet: it has more prompts than the API takes. `model-api-fleet.ts` starts three of them.
import { once } from "node:events";
import { SlotClient } from "@slotkeeper/client";
import type { Prompt } from "./http-upstream.ts";

const [url = "", api = "", hostname = "", team = "", seconds = "10"] = process.argv.slice(2);
const CALLERS = 12;
const ESTIMATE = 300;
const keeper = new SlotClient({ url, maxWaitMs: 60_000 });

// All begin together, or the first one would use what the budget has saved up.
process.send?.("ready");
await once(process, "message");
process.disconnect();
const endsAt = performance.now() + Number(seconds) * 1000;

/** The true cost is known after the answer: a third to all of the estimate. */
function newPrompt(): Prompt {
  return { team, tokens: Math.round(ESTIMATE * (0.33 + 0.67 * Math.random())), takesMs: 50 + 100 * Math.random() };
}

async function complete(prompt: Prompt): Promise<void> {
  const slot = await keeper.acquire({ hostname, bucket: team, cost: { tokens: ESTIMATE } });
  try {
    const response = await fetch(api, { method: "POST", body: JSON.stringify(prompt), signal: slot.signal });
    const { usedTokens } = (await response.json()) as { usedTokens: number };
    await slot.release({ status: response.status, used: { tokens: usedTokens } });
  } finally {
    await slot.release();
  }
}

async function keepAsking(): Promise<void> {
  while (performance.now() < endsAt) await complete(newPrompt());
}

await Promise.all(Array.from({ length: CALLERS }, keepAsking));
