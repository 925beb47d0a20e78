/** What the main entry must do on every host, in real time. It runs inside a browser and inside `workerd`. */
import { isSlotkeeperError, Semaphore, SlotPool } from "slotkeeper";

const code = (error: unknown) => (isSlotkeeperError(error) ? error.code : String(error));

/** The observed values, by name. The specs compare them with `expected`. */
export async function smoke(): Promise<Record<string, unknown>> {
  return {
    acquire: await acquire(),
    handOff: await handOff(),
    timeout: await timeout(),
    ttl: await ttl(),
    abort: await abort(),
    run: await new Semaphore(1).run((slot) => slot.number),
    pool: await pool(),
  };
}

export const expected: Record<string, unknown> = {
  acquire: [1, true, true, false, 0],
  handOff: ["first", "second"],
  timeout: "ACQUIRE_TIMEOUT",
  ttl: ["SLOT_EXPIRED", "next"],
  abort: "stop",
  run: 1,
  pool: [1, false, 0],
};

async function acquire(): Promise<unknown> {
  const sem = new Semaphore(1);
  const slot = await sem.acquire();
  return [sem.inUse, slot.id.length >= 20, slot.release(), slot.release(), sem.inUse];
}

async function handOff(): Promise<string[]> {
  const sem = new Semaphore(1);
  const order: string[] = [];
  const held = await sem.acquire();
  const all = ["first", "second"].map((who) => sem.run(() => void order.push(who)));
  held.release();
  await Promise.all(all);
  return order;
}

async function timeout(): Promise<string> {
  const sem = new Semaphore(1);
  sem.tryAcquire();
  return sem.acquire({ timeoutMs: 5 }).then(() => "granted", code);
}

async function ttl(): Promise<string[]> {
  const sem = new Semaphore(1, { ttlMs: 5, abortOnExpiry: true });
  const expired = sem.run(() => new Promise<string>(() => {})).catch(code);
  const next = sem.run(() => "next");
  return Promise.all([expired, next]);
}

async function abort(): Promise<unknown> {
  const sem = new Semaphore(1);
  sem.tryAcquire();
  const controller = new AbortController();
  const waiter = sem.acquire({ signal: controller.signal }).catch((reason: unknown) => reason);
  controller.abort("stop");
  return waiter;
}

async function pool(): Promise<unknown> {
  const slots = new SlotPool({ max: 1, maxPerKey: 1 });
  const slot = await slots.acquire("key");
  const seen = [slots.inUse, slots.tryAcquire("other") !== undefined];
  slot.release();
  slots.close();
  return [...seen, slots.inUse];
}
