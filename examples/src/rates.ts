// Five requests at a time and 20 tokens per 100 ms, shared fairly by teams. Tokens that were estimated too high are given back.
import { Limiter, stream } from "slotkeeper/limiter";

const api = new Limiter({
  slots: 5,
  budgets: { tokens: { limit: 20, perMs: 100 } },
  perKey: { slots: 2 },
});

async function ask(team: string, question: string): Promise<string> {
  return api.run(
    (slot) => {
      slot.settle({ tokens: question.length }); // the true cost
      return `${team}: ${question.toUpperCase()}`;
    },
    { key: team, cost: { tokens: 15 }, timeoutMs: 5_000 }, // an estimate
  );
}

console.log((await Promise.all([ask("red", "why?"), ask("red", "when?"), ask("blue", "who?")])).join(", "));
for await (const length of stream(api, ["a", "bb", "ccc"], (text) => text.length)) console.log(length);
