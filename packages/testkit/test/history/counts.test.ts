import { type CountName, formatVerdict, judgeHistory } from "@slotkeeper/testkit/history";
import { expect, test } from "vitest";
import { Script } from "./script.ts";

/** The counts that are not 0: a number if they are exact, otherwise least and most. */
function countsOf(script: Script): Partial<Record<CountName, number | [number, number]>> {
  const counts = Object.entries(judgeHistory(script.lines).counts).filter(([, { most }]) => most > 0);
  return Object.fromEntries(counts.map(([name, { least, most }]) => [name, least === most ? least : [least, most]]));
}

/** A last call long after everything else, so that acknowledged calls have taken effect. */
function later(script: Script): Script {
  script.session({ host: "other.example" }).ask(50_000, 50_001, { result: "overloaded" });
  return script;
}

test("a quiet history determines every count", () => {
  const script = new Script();
  script.session().granted(0, 10).release(100);
  script.session().pending(0, 10).granted(11, 20).release(100);
  script.session().pending(200, 210).cancel(211, 212).timeout(213, 214, "canceled");
  expect(countsOf(later(script))).toEqual({ begun: 3, granted: 2, released: 2, canceled: 1, timeout: [0, 1] });
  const timedOut = new Script({ promptMs: 1e6 });
  timedOut.session().pending(0, 10).timeout(11, 60_001, "deadline");
  expect(countsOf(timedOut)).toEqual({ begun: 1, timeout: 1 });
});

test("a call without an answer may have begun a session, and may have got a slot", () => {
  const script = new Script();
  script.session().ask(0, undefined);
  expect(countsOf(script)).toEqual({ begun: [0, 1], granted: [0, 1], returned: [0, 1], timeout: [0, 1] });
  const repeated = new Script();
  repeated.session({ requestId: "r" }).ask(0, undefined);
  repeated.session({ requestId: "r" }).granted(200, 210).release(300);
  expect(countsOf(later(repeated))).toMatchObject({ begun: 1, released: 1 });
});

test("a client that is away between two polls may miss a slot; one that comes back at once does not", () => {
  const away = new Script();
  away.session().pending(0, 10).granted(2_000, 2_010).release(2_100);
  expect(countsOf(later(away))).toEqual({ begun: 1, granted: [1, 2], returned: [0, 1], released: 1 });
  const back = new Script();
  back.session().pending(0, 10).granted(500, 510).release(2_100);
  expect(countsOf(later(back))).toEqual({ begun: 1, granted: 1, released: 1 });
});

test("a release counts for certain if it was acknowledged within the lease, and nothing happened to the service", () => {
  const released = (build: (script: Script) => void) => {
    const script = new Script();
    build(script);
    return countsOf(later(script)).released;
  };
  expect(released((script) => script.session().granted(0, 10).release(100))).toBe(1);
  expect(released((script) => script.session().granted(0, 10).lostRelease(100))).toEqual([0, 1]);
  expect(released((script) => script.session().granted(0, 10).release(30_100))).toEqual([0, 1]);
  expect(released((script) => script.fault("delay", 150, 200).session().granted(0, 10).release(100))).toEqual([0, 1]);
  expect(released((script) => script.session().granted(0, 10))).toBeUndefined();
});

test("a throttled session ends once; a first call that is throttled again counts again", () => {
  const script = new Script();
  script.session().granted(0, 10).release(20, 503);
  script.session().pending(0, 10).ask(30, 35, { result: "throttled" });
  expect(countsOf(later(script))).toMatchObject({ begun: 2, throttled: 1 });
});

test("nothing is known about sessions from before lost commits, and the verdict shows the counts", () => {
  const script = new Script().fault("lost-commits", 50, 60);
  script.session().granted(0, 10).release(100);
  expect(countsOf(script).begun).toEqual([0, Number.POSITIVE_INFINITY]);
  const quiet = new Script();
  quiet.session().granted(0, 10).release(100);
  expect(formatVerdict(judgeHistory(later(quiet).lines))).toContain(
    "the service must have counted: begun 1, granted 1, returned 0, timeout 0, throttled 0, canceled 0, released 1",
  );
});
