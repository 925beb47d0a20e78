import { detectMemory } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { FakeMemory, GB, MB } from "./fake-memory.ts";

/** As /proc/self/cgroup has it in a container of version 1: the path is the host's, which is not mounted inside. */
const V1_CONTAINER = [
  "12:pids:/docker/4f0c",
  "11:cpu,cpuacct:/docker/4f0c",
  "5:memory:/docker/4f0c",
  "1:name=systemd:/docker/4f0c",
  "0::/system.slice/containerd.service",
  "",
].join("\n");
/** As version 1 says "no limit". */
const V1_NO_LIMIT = "9223372036854771712\n";

describe("the environment", () => {
  const machine = new FakeMemory({ totalBytes: 64 * GB });

  test.each([
    { env: { MEDIA__SERVER_MEMORY_GB: "8.0" }, gb: 8, source: "MEDIA__SERVER_MEMORY_GB" },
    { env: { SERVER_MEMORY_GB: "4" }, gb: 4, source: "SERVER_MEMORY_GB" },
    { env: { MEDIA__SERVER_MEMORY_GB: "8", SERVER_MEMORY_GB: "4" }, gb: 8, source: "MEDIA__SERVER_MEMORY_GB" },
    { env: { MEDIA__SERVER_MEMORY_GB: "0", SERVER_MEMORY_GB: "4" }, gb: 4, source: "SERVER_MEMORY_GB" },
    { env: { MEDIA__SERVER_MEMORY_GB: "0.0" }, gb: 64, source: "machine" },
    { env: { SERVER_MEMORY_GB: "0" }, gb: 64, source: "machine" },
    { env: {}, gb: 64, source: "machine" },
  ])("$env: $gb GB by $source", ({ env, gb, source }) => {
    expect(detectMemory(env, machine)).toEqual({ gb, source });
  });

  test("goes before the container's limit", () => {
    const probe = new FakeMemory({ files: { "/sys/fs/cgroup/memory.max": `${GB}\n` }, totalBytes: 64 * GB });
    expect(detectMemory({ SERVER_MEMORY_GB: "3" }, probe)).toEqual({ gb: 3, source: "SERVER_MEMORY_GB" });
  });

  test.each(["abc", " ", "-1", "8GB", "1e3", "0x10", "Infinity", "NaN", "8,5", " 8"])(
    "%j is refused by name, and by value",
    (text) => {
      for (const name of ["MEDIA__SERVER_MEMORY_GB", "SERVER_MEMORY_GB"]) {
        const message = `Expected \`${name}\` to be a finite number from 0 up, got ${JSON.stringify(text)}`;
        expect(() => detectMemory({ [name]: text }, machine)).toThrow(new RangeError(message));
      }
    },
  );

  test("is refused even where the other variable would win", () => {
    expect(() => detectMemory({ MEDIA__SERVER_MEMORY_GB: "8", SERVER_MEMORY_GB: "lots" }, machine)).toThrow(
      'Expected `SERVER_MEMORY_GB` to be a finite number from 0 up, got "lots"',
    );
  });
});

describe("control groups, version 2", () => {
  test("a container's limit is at the root that it sees", () => {
    const files = { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": `${512 * MB}\n` };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 0.5, source: "cgroup v2" });
  });

  test("the limit of a group above holds for those below", () => {
    const files = {
      "/proc/self/cgroup": "0::/system.slice/media.service\n",
      "/sys/fs/cgroup/system.slice/media.service/memory.max": "max\n",
      "/sys/fs/cgroup/system.slice/memory.max": `${4 * GB}\n`,
    };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 4, source: "cgroup v2" });
  });

  test("of several limits on the way up the smallest holds", () => {
    const files = {
      "/proc/self/cgroup": "0::/a/b:c/d\n",
      "/sys/fs/cgroup/a/b:c/d/memory.max": `${3 * GB}\n`,
      "/sys/fs/cgroup/a/b:c/memory.max": `${2 * GB}\n`,
      "/sys/fs/cgroup/a/memory.max": `${5 * GB}\n`,
    };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 2, source: "cgroup v2" });
  });

  test('"max" is no limit', () => {
    const files = { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 64, source: "machine" });
  });

  test("a group outside of what the process may see is looked for at the root", () => {
    const files = { "/proc/self/cgroup": "0::/../../other\n", "/sys/fs/cgroup/memory.max": `${GB}\n` };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 1, source: "cgroup v2" });
  });
});

describe("control groups, version 1", () => {
  test("a container's limit is at the root that it sees, whatever path the host gave it", () => {
    const files = {
      "/proc/self/cgroup": V1_CONTAINER,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${256 * MB}\n`,
    };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 0.25, source: "cgroup v1" });
  });

  test("on the host the group's own folder has the limit", () => {
    const files = {
      "/proc/self/cgroup": V1_CONTAINER,
      "/sys/fs/cgroup/memory/docker/4f0c/memory.limit_in_bytes": `${3 * GB}\n`,
      "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes": V1_NO_LIMIT,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": V1_NO_LIMIT,
    };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 3, source: "cgroup v1" });
  });

  test("the largest number there is means no limit, also where the machine's memory is unknown", () => {
    const files = { "/proc/self/cgroup": V1_CONTAINER, "/sys/fs/cgroup/memory/memory.limit_in_bytes": V1_NO_LIMIT };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 16 * GB }))).toEqual({ gb: 16, source: "machine" });
    expect(detectMemory({}, new FakeMemory({ files }))).toEqual({ gb: 2, source: "default" });
  });

  test("both versions side by side: the smaller limit holds", () => {
    const files = {
      "/proc/self/cgroup": V1_CONTAINER,
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${GB}\n`,
      "/sys/fs/cgroup/system.slice/memory.max": `${8 * GB}\n`,
    };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 1, source: "cgroup v1" });
  });
});

describe("where no control group says anything", () => {
  test("the runtime's limit holds", () => {
    const probe = new FakeMemory({ constrainedBytes: GB, totalBytes: 64 * GB });
    expect(detectMemory({}, probe)).toEqual({ gb: 1, source: "runtime limit" });
  });

  test.each([undefined, 0, 18_446_744_073_709_552_000])(
    "a runtime that says %s knows of no limit",
    (constrainedBytes) => {
      const probe = new FakeMemory({ constrainedBytes, totalBytes: 64 * GB });
      expect(detectMemory({}, probe)).toEqual({ gb: 64, source: "machine" });
    },
  );

  test("a limit above the machine's memory is none", () => {
    const files = { "/sys/fs/cgroup/memory.max": `${100 * GB}\n` };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 64 * GB }))).toEqual({ gb: 64, source: "machine" });
  });

  test.each(["", "garbage", "-1", "0", "12 34"])("a file that says %j says nothing", (text) => {
    const files = { "/proc/self/cgroup": "no such\nformat", "/sys/fs/cgroup/memory.max": text };
    expect(detectMemory({}, new FakeMemory({ files, totalBytes: 4 * GB }))).toEqual({ gb: 4, source: "machine" });
  });

  test("a host that knows nothing is taken to have 2 GB", () => {
    expect(detectMemory({}, new FakeMemory())).toEqual({ gb: 2, source: "default" });
  });
});

test("this very process is detected, whatever it runs on", () => {
  const { gb, source } = detectMemory({});
  expect(gb).toBeGreaterThan(0);
  expect(["cgroup v2", "cgroup v1", "runtime limit", "machine"]).toContain(source);
});
