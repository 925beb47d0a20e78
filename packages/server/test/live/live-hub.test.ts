import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { LiveState } from "@slotkeeper/protocol";
import { LiveHub } from "@slotkeeper/server/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { afterEach, expect, it } from "vitest";

const servers = new Set<Server>();
afterEach(() => {
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  servers.clear();
});

class Bench {
  readonly clock = new VirtualClock();
  readonly frames: { hosts: readonly string[]; more: number }[] = [];
  readonly errors: unknown[] = [];
  dropped = 0;
  isFailing = false;
  readonly hub = new LiveHub({
    clock: this.clock,
    frame: async (hosts, more) => {
      if (this.isFailing) throw new Error("the store is down");
      this.frames.push({ hosts, more });
      return { hosts, more } as unknown as LiveState;
    },
    onDropped: () => this.dropped++,
    onError: (error) => this.errors.push(error),
  });
  readonly #server = createServer((_request, response) => {
    response.writeHead(200);
    this.responses.push(response);
    this.hub.add(response, {});
  });
  readonly responses: ServerResponse[] = [];

  async listen(): Promise<IncomingMessage> {
    if (!this.#server.listening) {
      servers.add(this.#server);
      this.#server.listen(0, "127.0.0.1");
      await once(this.#server, "listening");
    }
    const { port } = this.#server.address() as AddressInfo;
    const [message] = (await once(get({ port, agent: false }), "response")) as [IncomingMessage];
    message.on("error", () => {});
    return message;
  }
}

it("HUB1: without a listener there is no timer, and nothing is stored", async () => {
  const bench = new Bench();
  for (let n = 0; n < 1000; n++) bench.hub.stir(`h${n}`);
  expect(bench.clock.pending).toBe(0);
  await bench.listen();
  await bench.clock.run(1_000);
  expect(bench.frames).toEqual([{ hosts: [], more: 0 }]);
});

it("HUB2: ten thousand changes a second are one message, created once for a hundred listeners", async () => {
  const bench = new Bench();
  const received: string[] = Array.from({ length: 100 }, () => "");
  for (const at of received.keys()) {
    const message = await bench.listen();
    message.on("data", (chunk: Buffer) => (received[at] += chunk.toString()));
  }
  for (let ms = 0; ms < 2_000; ms++) {
    for (let n = 0; n < 10; n++) bench.hub.stir(`h${(10 * ms + n) % 50}`);
    await bench.clock.run(1);
  }
  expect(bench.frames.map(({ hosts, more }) => [hosts.length, more])).toEqual(Array.from({ length: 2 }, () => [50, 0]));
  await expect.poll(() => received.every((text) => text.split("event: state").length === 3)).toBe(true);
  expect(new Set(received).size).toBe(1);
});

it("HUB3: a listener that does not read is cut off after a bounded backlog; the others continue", async () => {
  const bench = new Bench();
  const silent = await bench.listen();
  silent.pause();
  const reading = await bench.listen();
  let received = 0;
  reading.on("data", (chunk: Buffer) => (received += chunk.length));
  const pad = "x".repeat(64 * 1024);
  let most = 0;
  for (let said = 0; bench.dropped === 0 && said < 5_000; said++) {
    bench.hub.say("audit", { pad });
    most = Math.max(most, ...bench.responses.map(({ writableLength }) => writableLength));
    await new Promise((resolve) => setImmediate(resolve));
    // If a listener that reads has not got everything yet, the machine is slow.
    await expect.poll(() => bench.responses[1]?.writableLength).toBe(0);
  }
  expect([bench.dropped, bench.hub.size]).toEqual([1, 1]);
  expect(most).toBeLessThan(256 * 1024 + 2 * pad.length);
  expect(bench.responses[0]?.destroyed).toBe(true);
  const before = received;
  bench.hub.say("audit", { pad });
  await expect.poll(() => received).toBeGreaterThan(before);
});

it("HUB4: hosts that do not fit in a message follow in the next ones; above five thousand they are counted", async () => {
  const bench = new Bench();
  await bench.listen();
  for (let n = 0; n < 5_010; n++) bench.hub.stir(`h${n}`);
  await bench.clock.run(1_000);
  expect(bench.frames[0]?.hosts).toHaveLength(100);
  expect(bench.frames[0]?.more).toBe(4_910);
  await bench.clock.run(49_000);
  expect(new Set(bench.frames.flatMap(({ hosts }) => hosts)).size).toBe(5_000);
  expect(bench.frames.at(-1)?.more).toBe(0);
});

it("sends a message now and then even if nothing changes, and stops without listeners", async () => {
  const bench = new Bench();
  const message = await bench.listen();
  await bench.clock.run(20_000);
  expect(bench.frames).toHaveLength(4);
  message.destroy();
  await expect.poll(() => bench.hub.size).toBe(0);
  expect(bench.clock.pending).toBe(0);
});

it("an error while a frame is created is reported, and the next frame is sent", async () => {
  const bench = new Bench();
  await bench.listen();
  bench.isFailing = true;
  await bench.clock.run(1_000);
  expect(bench.errors).toHaveLength(1);
  bench.isFailing = false;
  bench.hub.stir("h");
  await bench.clock.run(1_000);
  expect(bench.frames).toEqual([{ hosts: ["h"], more: 0 }]);
});

it("refuses more listeners than it can serve, and all of them after it is closed", async () => {
  const bench = new Bench();
  const message = await bench.listen();
  expect(bench.hub.isFull).toBe(false);
  bench.hub.close();
  message.resume();
  await once(message, "end");
  expect([bench.hub.isFull, bench.hub.size, bench.clock.pending]).toEqual([true, 0, 0]);
});
