/**
 * An hour of virtual time. Heavy keys with long requests and light keys with short ones always have more to do, and
 * call one model API. For half an hour its capacity is fixed, and tokens per minute are the limit. Then the number of
 * requests that it takes at a time changes by up to 30 % every five minutes.
 */
import { FakeClock } from "slotkeeper/testing";
import type { Call, Client } from "./callers.ts";
import { seeded } from "./random.ts";
import { type Limits, ModelApi, type Request } from "./upstream.ts";

const LIMITS: Limits = { requestsPerMinute: 9_000, tokensPerMinute: 1_400_000 };
const MINUTE = 60_000;
const MINUTES = 60;
const FIXED_MINUTES = 30;
const MOVES_EVERY_MINUTES = 5;
const [LEAST, MOST] = [24, 100];

export interface Minute {
  readonly capacity: number;
  readonly slots: number;
  /** The used part of each limit, 0 to 1, and of the limit that was used most. */
  readonly slotsUsed: number;
  readonly tokensUsed: number;
  readonly used: number;
  readonly answered: number;
  readonly refused: number;
}

export interface Hour {
  readonly minutes: readonly Minute[];
  readonly fixed: number;
  readonly moving: number;
  readonly refusedShare: number;
  /** The largest distance of a key from its fair share of tokens, as a part of that share. */
  readonly unfairness: number;
}

interface Kind {
  readonly key: string;
  readonly callers: number;
  readonly tokens: number;
  readonly takesMs: number;
}

/** Each key should get the same number of tokens: heavy keys in few requests, light keys in many. */
const KINDS: readonly Kind[] = [
  ...["heavy 1", "heavy 2"].map((key) => ({ key, callers: 60, tokens: 3_000, takesMs: 4_000 })),
  ...["light 1", "light 2", "light 3", "light 4"].map((key) => ({ key, callers: 60, tokens: 500, takesMs: 1_500 })),
];

function requestOf({ key, tokens, takesMs }: Kind, random: () => number): Request {
  const actual = Math.round(tokens * (0.4 + 0.6 * random()));
  return { key, estimatedTokens: tokens, tokens: actual, takesMs: takesMs * (0.5 + random()) };
}

async function keepCalling(kind: Kind, call: Call, random: () => number): Promise<never> {
  for (;;) await call(requestOf(kind, random));
}

export interface HourOptions {
  readonly seed?: number;
  /** Tokens are plentiful: only the number at a time limits, and it changes from the beginning. */
  readonly movesAlways?: boolean;
}

export async function simulateHour(
  makeClient: (clock: FakeClock, api: ModelApi, limits: Limits) => Client,
  { seed = 1, movesAlways = false }: HourOptions = {},
): Promise<Hour> {
  const clock = new FakeClock();
  const random = seeded(seed);
  const moves = seeded(seed + 1_000);
  const limits = movesAlways ? { requestsPerMinute: 90_000, tokensPerMinute: 20_000_000 } : LIMITS;
  const api = new ModelApi(clock, limits, movesAlways ? 40 : MOST);
  const client = makeClient(clock, api, limits);
  for (const kind of KINDS) {
    for (let caller = 0; caller < kind.callers; caller++) void keepCalling(kind, client.call, random);
  }
  const minutes: Minute[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    const isMoving = movesAlways || minute >= FIXED_MINUTES;
    if (isMoving && minute % MOVES_EVERY_MINUTES === 0) api.capacity = moved(api.capacity, moves);
    minutes.push(await measureMinute(clock, api, limits, client));
  }
  return summaryOf(minutes, api, movesAlways ? 0 : FIXED_MINUTES);
}

function moved(capacity: number, random: () => number): number {
  const next = Math.round(capacity * (0.7 + 0.6 * random()));
  return Math.min(MOST, Math.max(LEAST, next));
}

async function measureMinute(clock: FakeClock, api: ModelApi, limits: Limits, client: Client): Promise<Minute> {
  const { slotMs, tokens, served, refused } = api;
  await clock.advanceAsync(MINUTE);
  api.measure();
  const slotsUsed = (api.slotMs - slotMs) / (api.capacity * MINUTE);
  const tokensUsed = (api.tokens - tokens) / limits.tokensPerMinute;
  return {
    capacity: api.capacity,
    slots: client.slots(),
    slotsUsed: Math.min(1, slotsUsed),
    tokensUsed,
    used: Math.min(1, Math.max(slotsUsed, tokensUsed)),
    answered: api.served - served,
    refused: api.refused - refused,
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The first minute is left out, because the limiter has not found the capacity of the service yet. */
function summaryOf(minutes: readonly Minute[], api: ModelApi, fixedMinutes: number): Hour {
  const used = minutes.map((minute) => minute.used);
  const shares = KINDS.map(({ key }) => api.tokensByKey.get(key) ?? 0);
  const fair = mean(shares);
  return {
    minutes,
    fixed: mean(used.slice(1, fixedMinutes)),
    moving: mean(used.slice(Math.max(1, fixedMinutes))),
    refusedShare: api.refused / (api.refused + api.served),
    unfairness: Math.max(...shares.map((share) => Math.abs(share / fair - 1))),
  };
}
