import { SemaphoreRegistry } from "slotkeeper";
import { describe, expect, test } from "vitest";
import { useWorld } from "./world.ts";

const world = useWorld();

function hold(name: string, slots: number, held: number): () => void {
  const sem = world().semaphore(slots, { name });
  const taken = Array.from({ length: held }, () => sem.tryAcquire());
  return () => {
    for (const slot of taken) slot?.release();
  };
}

describe("SemaphoreRegistry", () => {
  test("stats lists the names in use by percent, the highest first", () => {
    const releases = [hold("half", 4, 2), hold("full", 1, 1), hold("idle", 2, 0), hold("tenth", 10, 1)];
    const stats = world().registry.stats();
    expect(stats.map(({ name, percent }) => [name, percent])).toEqual([
      ["full", 100],
      ["half", 50],
      ["tenth", 10],
    ]);
    expect(stats[1]).toEqual({
      name: "half",
      capacity: 4,
      inUse: 2,
      waiting: 0,
      percent: 50,
      acquired: 2,
      released: 0,
      expired: 0,
      timedOut: 0,
      aborted: 0,
      rejected: 0,
    });
    for (const release of releases) release();
    expect(world().registry.stats()).toEqual([]);
  });

  test("with names, stats lists exactly these, even at 0 percent", () => {
    const releases = [hold("busy", 2, 1), hold("idle", 2, 0), hold("other", 2, 2)];
    const stats = world().registry.stats({ names: ["idle", "busy"] });
    expect(stats.map(({ name, percent }) => [name, percent])).toEqual([
      ["busy", 50],
      ["idle", 0],
    ]);
    for (const release of releases) release();
  });

  test("limit shortens the list after sorting", () => {
    const releases = [hold("c", 4, 1), hold("a", 4, 3), hold("b", 4, 2)];
    expect(
      world()
        .registry.stats({ limit: 2 })
        .map(({ name }) => name),
    ).toEqual(["a", "b"]);
    expect(world().registry.stats({ limit: 0 })).toEqual([]);
    for (const release of releases) release();
  });

  test("the default limit is 100", () => {
    const releases = Array.from({ length: 101 }, (_, index) => hold(`name-${index}`, 2, 1));
    expect(world().registry.stats()).toHaveLength(100);
    expect(world().registry.stats({ limit: Infinity })).toHaveLength(101);
    for (const release of releases) release();
  });

  test("unlimited semaphores are listed at 0 percent", () => {
    const release = hold("endless", Infinity, 3);
    expect(world().registry.stats()).toMatchObject([{ name: "endless", percent: 0, inUse: 3 }]);
    release();
  });

  test("sweep drops names that have been idle for idleMs and returns how many", () => {
    hold("a", 1, 0);
    const release = hold("b", 1, 1);
    world().clock.advance(59_999);
    expect(world().registry.sweep()).toBe(0);
    world().clock.advance(1);
    expect([world().registry.sweep(), world().registry.size]).toEqual([1, 1]);
    release();
    world().clock.advance(59_999);
    expect(world().registry.sweep()).toBe(0);
    world().clock.advance(1);
    expect([world().registry.sweep(), world().registry.size]).toEqual([1, 0]);
  });

  test("an idle name is dropped when a new name is created", () => {
    hold("old", 1, 0);
    world().clock.advance(60_000);
    expect(world().registry.size).toBe(1);
    hold("new", 1, 0);
    expect(world().registry.size).toBe(1);
    expect(
      world()
        .registry.stats({ names: ["old", "new"] })
        .map(({ name }) => name),
    ).toContain("new");
  });

  test("each registry has its own idleMs", () => {
    const { clock } = world();
    const registry = new SemaphoreRegistry({ idleMs: 5, clock });
    world().semaphore(1, { name: "a", registry });
    clock.advance(5);
    expect(registry.sweep()).toBe(1);
  });

  test("using a name restarts its idle time", () => {
    const sem = world().semaphore(1, { name: "a" });
    world().clock.advance(50_000);
    sem.tryAcquire()?.release();
    world().clock.advance(50_000);
    expect(world().registry.sweep()).toBe(0);
  });

  test("reading the statistics of a dropped name does not fail", () => {
    const sem = world().semaphore(2, { name: "a" });
    world().clock.advance(60_000);
    world().registry.sweep();
    expect(sem.stats()).toMatchObject({ name: "a", capacity: 2, inUse: 0, percent: 0 });
  });

  test("the registry sets no timer", () => {
    hold("a", 1, 0);
    expect(world().clock.pending).toBe(0);
  });
});
