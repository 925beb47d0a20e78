import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HostStore } from "@slotkeeper/queue";
import { Service, type ServiceInit, type ShutdownTimes } from "@slotkeeper/server";
import type { Clock } from "slotkeeper";
import { afterEach } from "vitest";
import { checkedAgainstDocument } from "./openapi-check.ts";

/** A service on its own port, used over real HTTP. Every answer is checked against its OpenAPI document. */
export class Fixture {
  readonly service: Service;
  readonly logged: string[];

  constructor(service: Service, logged: string[]) {
    this.service = service;
    this.logged = logged;
  }

  get url(): string {
    return this.service.url;
  }

  /** Sends a POST under `/api/v0/fairqueue` and returns the parsed answer. */
  async call(name: string, body: unknown, init: CallInit = {}): Promise<Reply> {
    return this.request("POST", `/api/v0/fairqueue/${name}`, { ...init, body: JSON.stringify(body) });
  }

  async request(method: string, path: string, { headers = {}, signal, body }: CallInit & { body?: string } = {}) {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    await checkedAgainstDocument(this.url, { method, path, response, text });
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (isJson ? JSON.parse(text) : {}) as Answer,
    };
  }

  /** The first call. */
  acquire(more: object = {}, init?: CallInit): Promise<Reply> {
    return this.call("acquire", { hostname: "example.com", ...more }, init);
  }

  poll(queryToken: string, init?: CallInit): Promise<Reply> {
    return this.call("acquire", { queryToken }, init);
  }

  /** Acquires a slot without waiting; fails if none is free. */
  async take(more: object = {}): Promise<Answer> {
    const { body } = await this.acquire({ waitMs: 5_000, ...more });
    if (body.result !== "granted") throw new Error(`expected granted, got ${JSON.stringify(body)}`);
    return body;
  }

  release(slotToken: string, more: object = {}): Promise<Reply> {
    return this.call("release", { slotToken, ...more });
  }
}

export interface CallInit {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Any answer. Each test knows which fields it has. */
export interface Answer {
  result: string;
  queryToken: string;
  slotToken: string;
  fence: number;
  leaseMs: number;
  limit: number;
  position: number;
  waiters: number;
  blockedBy: string;
  reason: string;
  throttleCode: number;
  throttleRetryAfter: number;
  retryAfter: number;
  code: string;
  detail: string;
  errors: { field: string; message: string }[];
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  body: Answer;
}

export interface FixtureInit {
  /** Given as flags, the layer with the highest priority. */
  config?: object;
  file?: string;
  environment?: Record<string, string>;
  controlTimes?: NonNullable<ServiceInit["controlTimes"]>;
  open?: NonNullable<ServiceInit["open"]>;
  /** Replaces the function that keeps the log lines. */
  write?: (line: string) => void;
}

/** Opens this store instead of the configured one. */
export function openWith(make: (clock: Clock) => HostStore): NonNullable<FixtureInit["open"]> {
  return async (_backend, clock) => ({
    store: make(clock),
    description: "the test's own",
    tokenKeys: ["a key that all of them have"],
    health: () => ({ isReady: true }),
    close: async () => {},
  });
}

const running = new Set<Fixture>();
const directories = new Set<string>();

export async function startFixture({ config = {}, write, ...sources }: FixtureInit = {}): Promise<Fixture> {
  const logged: string[] = [];
  const service = await Service.start({
    ...sources,
    flags: { listen: "127.0.0.1:0", ...config },
    log: { write: write ?? ((line) => logged.push(line)), isJson: true, hasColours: false },
  });
  const fixture = new Fixture(service, logged);
  running.add(fixture);
  return fixture;
}

export async function stopFixture(fixture: Fixture, times?: ShutdownTimes): Promise<void> {
  running.delete(fixture);
  await fixture.service.stop(times);
}

/** Writes a separate `config.json`. */
export function configFile(config: object | string, name = "config.json"): string {
  const file = join(newFolder(), name);
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
  return file;
}

/** The folder is deleted after the test. */
export function newFolder(): string {
  const directory = mkdtempSync(join(tmpdir(), "slotkeeper-"));
  directories.add(directory);
  return directory;
}

afterEach(async () => {
  await Promise.all([...running].map((fixture) => stopFixture(fixture)));
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  directories.clear();
});
