import { Writable } from "node:stream";
import { LogSink } from "@slotkeeper/server";
import { describe, expect, it } from "vitest";
import { startFixture } from "./service-fixture.ts";

const LINE = `${"x".repeat(99)}\n`;

describe("the log's stream", () => {
  it("that fails loses the line, but does not end the process", async () => {
    const error = Object.assign(new Error("no space left"), { code: "ENOSPC" });
    const sink = new LogSink(new Writable({ write: (_chunk, _encoding, done) => done(error) }));
    sink.write(LINE);
    await expect.poll(() => sink.lost).toBe(1);
  });

  it("that throws loses the line", () => {
    let isFull = true;
    const written: string[] = [];
    const stream = new Writable();
    stream.write = (chunk: string) => {
      if (isFull) throw new Error("ENOSPC");
      written.push(chunk);
      return true;
    };
    const sink = new LogSink(stream);
    sink.write(LINE);
    sink.write(LINE);
    isFull = false;
    sink.write(LINE);
    expect(sink.lost).toBe(2);
    expect(written).toEqual([expect.stringContaining('"msg":"log lines were lost","lines":2'), LINE]);
  });

  it("whose reader is blocked keeps a bounded part, and counts the rest", () => {
    const stream = new Writable({ write: () => {} });
    const sink = new LogSink(stream, 10_000);
    for (let line = 0; line < 100_000; line++) sink.write(LINE);
    expect(stream.writableLength).toBeLessThanOrEqual(10_000);
    expect(sink.lost).toBeGreaterThan(99_000);
  });

  it("whose reader left accepts nothing any more, and does not throw", () => {
    const stream = new Writable({ write: () => {} });
    const sink = new LogSink(stream);
    stream.destroy();
    sink.write(LINE);
    expect(sink.lost).toBe(1);
  });
});

describe("a service whose log cannot be written", () => {
  it("answers as before, and counts the lost lines", async () => {
    const fixture = await startFixture({
      write: () => {
        throw new Error("ENOSPC");
      },
    });
    expect((await fixture.request("GET", "/nowhere")).status).toBe(404);
    await fixture.take();
    const { text } = await fixture.request("GET", "/metrics");
    expect(Number(/^slotkeeper_log_lines_lost_total (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(1);
  });
});

describe("what a caller can make the service log", () => {
  it("is short: long paths and fields are cut", async () => {
    const fixture = await startFixture();
    await fixture.request("GET", `/${"p".repeat(12_000)}`);
    await expect.poll(() => fixture.logged.filter((line) => line.includes('"status":404')).length).toBe(1);
    for (const line of fixture.logged) expect(line.length).toBeLessThan(1_000);
  });

  it("is limited: of a thousand refusals some are logged, and the rest is counted", async () => {
    const fixture = await startFixture();
    const flood = Array.from({ length: 1_000 }, () => fetch(`${fixture.url}/nowhere`).then((reply) => reply.text()));
    await Promise.all(flood);
    const lines = () => fixture.logged.filter((line) => line.includes('"status":404'));
    expect(lines().length).toBeLessThan(300);
    await expect
      .poll(async () => {
        await fixture.request("GET", "/nowhere");
        return lines().some((line) => /"unlogged":\d/.test(line));
      })
      .toBe(true);
  });
});
