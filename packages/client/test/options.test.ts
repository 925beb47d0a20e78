import { readFileSync } from "node:fs";
import * as client from "@slotkeeper/client";
import { bucketOfIp, SlotClient, type SlotClientOptions } from "@slotkeeper/client";
import * as node from "@slotkeeper/client/node";
import { bundle } from "@slotkeeper/testkit/bundle";
import { isSlotkeeperError } from "slotkeeper";
import { describe, expect, test } from "vitest";

const url = "http://127.0.0.1:9";
const make = (options: object) => () => new SlotClient({ url, ...options });

const UNFIT = "Expected `url`, `header` and `token` to fit into a request";

describe("options of a client", () => {
  test("all problems are named at once, with expectation and value", () => {
    const wrong = { url: "ftp://x", maxWaitMs: -1, retries: 3, fetch: "fetch", telemetry: null };
    expect(make(wrong)).toThrow(TypeError);
    for (const part of [
      "Expected `maxWaitMs` to be a positive number, got -1",
      "Unknown option `retries` (known: `perRequestTimeoutMs`, ",
      'Expected `fetch` to be a function, got "fetch"',
      "Expected `telemetry` to be an object, got null",
    ]) {
      expect(make(wrong)).toThrow(part);
    }
  });

  test.each([
    [{ url: "" }, 'Expected `url` to be a non-empty string, got ""'],
    [{ url: undefined }, "Expected `url` to be a non-empty string, got undefined"],
    [{ url: null }, "Expected `url` to be a non-empty string, got null"],
    [{ url: "127.0.0.1:8080" }, "Expected `url` to be an http(s) URL"],
    [{ maxWaitMs: Number.NaN }, "Expected `maxWaitMs` to be a positive number, got NaN"],
    [{ maxWaitMs: Infinity }, "Expected `maxWaitMs` to be a positive number, got Infinity"],
    [{ maxWaitMs: 5n }, "Expected `maxWaitMs` to be a positive number, got 5"],
    [{ maxAttempts: 0 }, "Expected `maxAttempts` to be a positive number, got 0"],
    [{ token: "" }, "Expected `token`"],
    [{ hashHostname: "yes" }, 'Expected `hashHostname` to be a boolean, got "yes"'],
    [{ onFailure: "half" }, "Expected `onFailure`"],
    [{ onFailure: { share: 1.5 } }, "Expected `onFailure`"],
    [{ onFailure: {} }, "Expected `onFailure`"],
    [{ onFailure: null }, 'Expected `onFailure` to be "closed", "open" or { share: 0 to 1 }, got null'],
    [{ onFailure: { share: "0.5" } }, "Expected `onFailure`"],
    [{ onFailure: { share: [0.5] } }, "Expected `onFailure`"],
    [{ onFailure: { share: 0.5, forMs: 0 } }, "Expected `forMs` to be a positive number, got 0"],
    [{ onFailure: { share: 0.5, formS: 1 } }, "Unknown option `formS` (known: `forMs`, `share`)"],
    [{ constructor: 1 }, "Unknown option `constructor`"],
    [{ timeoutMs: 1 }, "Unknown option `timeoutMs` (known: `perRequestTimeoutMs`, "],
    [{ maxwait: 1 }, "Unknown option `maxwait` (known: `maxWaitMs`, "],
  ])("%o is refused", (options, message) => {
    expect(make(options)).toThrow(message);
  });

  test.each([
    [{ token: "sec\nret" }, UNFIT],
    [{ token: "secret€" }, UNFIT],
    [{ token: ["secret"] }, "Expected `token` to be a non-empty string, got object"],
    [{ token: { key: "secret" } }, "Expected `token` to be a non-empty string, got object"],
    [{ url: "ftp://u:secret@host" }, 'Expected `url` to be an http(s) URL, got …host"'],
    [{ url: `ftp://u:${"secret".repeat(50)}@host` }, "Expected `url` to be an http(s) URL, got …host"],
    [{ url: "host/?key=secret" }, "Expected `url` to be an http(s) URL"],
    [{ header: "se cret" }, UNFIT],
    [{ url: "http://u:secret@host" }, UNFIT],
    [{ url: "http://secret@host/path" }, UNFIT],
    [{ url: "http://host/?key=secret" }, UNFIT],
    [{ url: "http://host#secret" }, UNFIT],
    [{ url: "http://host:secret" }, UNFIT],
  ])("%o, which no request can contain, is refused without showing it", (options, message) => {
    const making = make({ ...options, onFailure: "open" });
    expect(making).toThrow(TypeError);
    expect(making).toThrow(message);
    expect(making).toThrow(/^(?!.*sec?.?ret)/s);
  });

  test("keys, headers and addresses that a request can contain are accepted", () => {
    for (const token of ["a b\tc", "käse", "from-a-file\n"]) expect(make({ token })).not.toThrow();
    expect(make({ header: "X_Key.1" })).not.toThrow();
    for (const to of ["http://[::1]:8080", "HTTPS://host/@team/slots//"]) expect(make({ url: to })).not.toThrow();
  });

  test("a value that is not an object, and a missing name, are named", () => {
    for (const options of [null, undefined, 5]) {
      expect(() => new SlotClient(options as unknown as SlotClientOptions)).toThrow(
        "Expected `options` to be an object",
      );
    }
    const keeper = new SlotClient({ url });
    expect(() => keeper.semaphore(undefined as unknown as string, 1)).toThrow(
      "Expected `name` to be a non-empty string",
    );
  });

  test("undefined counts as absent, and a url may have a path", () => {
    expect(make({ token: undefined, maxWaitMs: undefined, url: "http://gateway/slots/" })).not.toThrow();
    expect(() => new SlotClient(undefined as unknown as SlotClientOptions)).toThrow(TypeError);
  });

  test("calls check their options, too, before anything is sent", async () => {
    const keeper = new SlotClient({ url });
    const acquire = (options: object) => keeper.acquire(options as client.AcquireOptions);
    await expect(acquire({})).rejects.toThrow("Expected `hostname` to be a non-empty string");
    await expect(acquire({})).rejects.toThrow("got undefined");
    await expect(acquire({ hostname: "h", host: 5 })).rejects.toThrow("Unknown option `host` (known: `hostname`, ");
    await expect(keeper.run(undefined as unknown as client.AcquireOptions, () => {})).rejects.toThrow(
      "Expected `options` to be an object, got undefined",
    );
    await expect(acquire({ hostname: "h", signal: 5 })).rejects.toThrow("Expected `signal` to be an object, got 5");
    await expect(keeper.run({ hostname: "h" }, 5 as unknown as () => void)).rejects.toThrow(
      "Expected `work` to be a function",
    );
    expect(() => keeper.semaphore("", 1)).toThrow("Expected `name`");
    await expect(keeper.semaphore("s", 1).acquire({ limit: 2 } as object)).rejects.toThrow("Unknown option `limit`");
  });
});

test("an option is read once, so that the value in use is the one that was checked", async () => {
  const keeper = new SlotClient({ url, fetch: async () => Response.error() });
  let reads = 0;
  const options = {
    hostname: "h",
    get maxWaitMs() {
      return reads++ === 0 ? 1 : "a day";
    },
  };
  await expect(keeper.acquire(options as client.AcquireOptions)).rejects.toBeInstanceOf(client.SlotClientError);
  expect(reads).toBe(1);
});

test("a signal in place of the options is refused", async () => {
  const { signal } = new AbortController();
  const acquired = new SlotClient({ url }).semaphore("s", 1).acquire(signal as object);
  await expect(acquired).rejects.toThrow(/^Unknown option `aborted`, .*\(known: /);
});

describe("bucketOfIp", () => {
  test.each([
    ["203.0.113.4", undefined, "203.0.113.4/32"],
    ["203.0.113.4", { v4: 24 }, "203.0.113.0/24"],
    ["203.0.113.255", { v4: 29 }, "203.0.113.248/29"],
    ["203.0.113.4", { v4: 0 }, "0.0.0.0/0"],
    ["::ffff:203.0.113.4", undefined, "203.0.113.4/32"],
    ["2001:DB8:0:123f:4::1", undefined, "2001:db8:0:1230::/60"],
    ["2001:db8::1", { v6: 128 }, "2001:db8::1/128"],
    ["2001:db8:1:2:3:4:5:6", { v6: 128 }, "2001:db8:1:2:3:4:5:6/128"],
    ["::1", { v6: 64 }, "::/64"],
    ["fe80::1%eth0", { v6: 64 }, "fe80::/64"],
    ["1:2:3:4:5:6:7::", { v6: 112 }, "1:2:3:4:5:6:7:0/112"],
  ])("%s with %o is %s", (ip, options, bucket) => {
    expect(bucketOfIp(ip, options)).toBe(bucket);
  });

  test.each([
    "",
    "example.com",
    "1.2.3",
    "1.2.3.4.5",
    "256.0.0.1",
    "1::2::3",
    "12345::",
    "::1]/x",
    "1.2.3.4/8",
    undefined,
  ])("%s is refused", (ip) => {
    expect(() => bucketOfIp(ip as string)).toThrow(TypeError);
  });

  test("a length that does not fit is refused", () => {
    for (const v4 of [33, -1, Number.NaN]) expect(() => bucketOfIp("1.2.3.4", { v4 })).toThrow("`v4`");
    expect(() => bucketOfIp("::1", { v6: 129 })).toThrow("`v6`");
  });
});

describe("errors", () => {
  test("the classes have their names, in minified code too", async () => {
    const text = await bundle(
      `import * as client from "@slotkeeper/client";
import * as node from "@slotkeeper/client/node";
      export const names = Object.entries(client).filter(([name]) => name.endsWith("Error")).map(([name, made]) => {
        const error = new made({});
        return [name, made.name, error.constructor.name, error.name, error.stack.split("\\n")[0].split(":")[0]];
      });`,
      import.meta.dirname,
      { minify: true },
    );
    const { names } = (await import(`data:text/javascript,${encodeURIComponent(text)}`)) as { names: string[][] };
    expect(names).toHaveLength(7);
    for (const [name = "", ...seen] of names) expect(new Set(seen)).toEqual(new Set([name]));
  });

  const page = readFileSync(new URL("../../../docs/reference/client.md", import.meta.url), "utf8");
  const errors = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8")
    .split("\n## ")
    .find((section) => section.startsWith("Errors of the client")) as string;
  const classes = Object.entries({ ...client, ...node })
    .filter(([name]) => name.endsWith("Error") && name !== "SlotClientError")
    .map(([name, made]) => ({
      name,
      error: new (made as new (fields: object) => client.SlotClientError)({}),
    }));

  test.each(classes)("$name is in the reference with its code, and is recognised by the library", ({ name, error }) => {
    expect(errors).toMatch(
      new RegExp(`\\| \`${error.code}\` +\\| \`${name}\` +\\| ${error.retryable ? "yes" : "no"} `),
    );
    expect([error.name, error instanceof client.SlotClientError, isSlotkeeperError(error)]).toEqual([name, true, true]);
  });

  test("the reference lists no error and no option that does not exist", () => {
    const listed = [...errors.matchAll(/^\| `[A-Z_]+` +\| `(\w+Error)`/gm)].map(([, name]) => name);
    expect(new Set(listed)).toEqual(new Set(classes.map(({ name }) => name)));
    const [, table = ""] = /## Options of `SlotClient`\n([\s\S]*?)\n## /.exec(page) ?? [];
    const options = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name as string);
    const given = Object.fromEntries(options.map((name) => [name, Symbol("of no kind")]));
    expect(make(given)).toThrow(/^(?!.*Unknown)/);
    expect(options).toContain("telemetry");
  });
});
