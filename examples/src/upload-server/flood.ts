/** Aggressive clients: each sends one upload after the other, all at the same time. */
import { Agent, request } from "node:http";

const CLIENTS = 120;
const USERS = 30;
const BODY = Buffer.alloc(6 * 1024 ** 2, 1);

function upload(port: number, user: string, agent: Agent): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", method: "PUT", agent, headers: { "x-user": user } }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode === 200));
    });
    sent.once("error", reject);
    sent.end(BODY);
  });
}

/** Returns how many uploads were taken. Ends when the last one has its answer. */
export async function flood(port: number, durationMs: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const until = performance.now() + durationMs;
  let uploads = 0;
  const client = async (user: string): Promise<void> => {
    while (performance.now() < until) if (await upload(port, user, agent)) uploads++;
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(`user ${i % USERS}`)));
  agent.destroy();
  return uploads;
}
