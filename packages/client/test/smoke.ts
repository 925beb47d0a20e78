/** What the client must do on every host, against the service at `url`. It runs in browsers, Workers, Bun and Deno. */
import { bucketOfIp, SlotClient } from "@slotkeeper/client";

const code = (error: unknown) => (error as { code?: string }).code ?? String(error);

/** What was seen, by name; the tests compare it with `expected`. `name` keeps runs apart. */
export async function smoke(url: string, name: string): Promise<Record<string, unknown>> {
  const keeper = new SlotClient({ url, hashHostname: true });
  const semaphore = keeper.semaphore(name, 1);
  const held = await semaphore.acquire();
  const next = semaphore.run(() => "next");
  const controller = new AbortController();
  const aborted = semaphore.acquire({ signal: controller.signal }).catch((reason: unknown) => reason);
  const seen: Record<string, unknown> = {
    run: await keeper.run({ hostname: `${name}.example` }, (slot) => [slot.guarded, slot.fence > 0]),
    busy: [await semaphore.tryAcquire(), await semaphore.acquire({ timeoutMs: 50 }).catch(code)],
    bucket: bucketOfIp("2001:db8:0:123f::1"),
  };
  controller.abort("stop");
  seen["aborted"] = await aborted;
  seen["renewed"] = await held.renew();
  seen["released"] = [await held.release(), await held.release()];
  seen["next"] = await next;
  seen["stats"] = keeper.stats();
  return seen;
}

/** How an acquire ends at an address that redirects. */
export async function redirected(url: string): Promise<string> {
  const keeper = new SlotClient({ url, token: "a-shared-key-of-some-length", maxWaitMs: 2_000, maxAttempts: 2 });
  return keeper.acquire({ hostname: "example.com" }).then(() => "granted", code);
}

export const expected: Record<string, unknown> = {
  run: [true, true],
  busy: [undefined, "ACQUIRE_TIMEOUT"],
  bucket: "2001:db8:0:1230::/60",
  aborted: "stop",
  renewed: true,
  released: [true, false],
  next: "next",
  stats: { held: 0, unguarded: 0 },
};
