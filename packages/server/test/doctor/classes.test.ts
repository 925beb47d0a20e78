import { describe, expect, it } from "vitest";
import { diagnosisOf, finding, reported } from "./findings.ts";

describe("classes, as the doctor judges them", () => {
  it.each<[object, string]>([
    [{ classes: { batch: { ceiling: 6 } } }, "`fairQueue.classes.batch.ceiling` (6) is above `maxSlotPerHost` (5)"],
    [
      { maxSlotPerIp: 3, hosts: { "a.example": { classes: { batch: { ceiling: 2 } } } } },
      '`fairQueue.hosts["a.example"].classes.batch.ceiling` (2) is below `maxSlotPerIp` (3)',
    ],
    [
      { classes: { default: { ceiling: 2 }, batch: { ceiling: 2 } } },
      "the ceilings of `fairQueue.classes` sum up to 4, less than `maxSlotPerHost` (5)",
    ],
    [
      { weightedScheduler: { enabled: true }, hosts: { "a.example": { classes: { chat: {} } } } },
      '`fairQueue.hosts["a.example"].classes` turns off `fairQueue.weightedScheduler`',
    ],
    [{ classes: { default: { weight: 2 } } }, "`fairQueue.classes` has no class besides `default`"],
  ])("limits that have no effect, or too much, are advice: %j", async (fairQueue, found) => {
    const conflict = finding(await diagnosisOf({ fairQueue }), "LIMITS_CONFLICT");
    expect(conflict).toMatchObject({ check: "limits", severity: "warning" });
    expect(conflict.found.toLowerCase()).toContain(found.toLowerCase());
  });

  it.each<[object, string]>([
    [
      { classes: { chat: { floor: 5 } } },
      "Expected the floors of `fairQueue.classes` to sum up to less than the slots (5), got 5",
    ],
    [
      { classes: { chat: { floor: 2 } }, hosts: { "a.example": { maxSlotPerHost: 2 } } },
      'Expected the floors of `fairQueue.hosts["a.example"].classes` to sum up to less than the slots (2), got 2',
    ],
    [
      { classes: { chat: { weight: 0 } } },
      "Expected `fairQueue.classes.chat.weight` to be at least 0.001, got 0 (flag)",
    ],
  ])("limits that cannot work are problems of the configuration, each once: %j", async (fairQueue, found) => {
    const diagnosis = await diagnosisOf({ fairQueue });
    expect(reported(diagnosis)).toEqual(["problem CONFIG_INVALID"]);
    expect(finding(diagnosis, "CONFIG_INVALID").found).toContain(found);
  });

  it.each(["keys", "classes"])("%s of a named semaphore have no effect", async (name) => {
    const unused = finding(
      await diagnosisOf({ fairQueue: { hosts: { "sem:jobs": { [name]: { chat: {} } } } } }),
      "UNUSED_KEY",
    );
    expect(unused.found).toBe(`\`fairQueue.hosts["sem:jobs"].${name}\` has no effect.`);
  });

  it("usual classes are not reported", async () => {
    const hosts = {
      "a.example": { maxSlotPerHost: 20, classes: { chat: { weight: 4, floor: 4 }, batch: { ceiling: 10 } } },
    };
    expect(reported(await diagnosisOf({ fairQueue: { hosts } }))).toEqual([]);
  });
});
