import { HostUnderTest, leaseOf, sessionOf } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VirtualDatabase } from "./virtual-database.ts";

/** In the tail one character replaces the host's key, which may occur anywhere in a change set. */

let virtual: VirtualDatabase;
beforeAll(async () => {
  virtual = await VirtualDatabase.open();
});
afterAll(() => virtual.close());

test.each([
  ["as long as a hash", "0123456789abcdef".repeat(4)],
  ["part of every number", "1"],
  ["part of field names", "key"],
  ["with characters that JSON escapes", 'a"b\\c\u0001d\n'],
  ["with characters that mean something to a pattern", "\\1&%_"],
])("a commit is read back unchanged if the host's key is %s", async (_, key) => {
  const host = await HostUnderTest.on(virtual);
  Object.assign(host, { host: key });
  const since = await host.accept();
  const now = await host.now();
  const fence = host.head.fence + 1;
  const lease = leaseOf(`${key}.x`, fence, now, { key: `slot_${key}.x1`, session: `\u0001${key}`, bucket: "\\u0001" });
  await host.accept({ head: { fence }, puts: [lease, sessionOf(`s${key}1`, now + 60_000)], now });
  const { head } = host;
  const { tail } = await virtual.other.read(key, since);
  expect(tail).toEqual({
    kind: "changes",
    commits: [{ head, puts: [lease, sessionOf(`s${key}1`, now + 60_000)], dels: [] }],
  });
  const book = await virtual.other.read(key, undefined);
  expect(book.tail).toMatchObject({ kind: "book", book: { head } });
});

test("the tail does not contain the host's key: every slot token has it, and each commit would write it twice", async () => {
  const host = await HostUnderTest.on(virtual);
  const key = "fedcba9876543210".repeat(4);
  Object.assign(host, { host: key });
  const fence = host.head.fence + 1;
  await host.accept({ head: { fence }, puts: [leaseOf("a", fence, host.head.now, { key: `slot_${key}.a` })] });
  const { rows } = await virtual.client.query("SELECT changes FROM slotkeeper_tail WHERE host = $1", [key]);
  expect(rows).toHaveLength(1);
  expect(rows[0].changes).not.toContain(key);
});

test("a commit that no other instance needs is added to the tail only when another one follows that does", async () => {
  const host = await HostUnderTest.on(virtual);
  const inTail = async () => {
    const { rows } = await virtual.client.query(
      "SELECT tag, changes IS NOT NULL AS changes FROM slotkeeper_tail WHERE host = $1 ORDER BY number",
      [host.host],
    );
    return rows;
  };
  const first = await host.accept({ isShared: false });
  const second = await host.commitOf({ isShared: false });
  await virtual.store.commit(second);
  expect(await inTail()).toEqual([]);
  // Its answer was lost, and it is sent again: first at once, then after the commit of another program.
  expect(await virtual.store.commit(second)).toMatchObject({ isOk: true });
  host.tag = second.tag;
  const third = await host.accept();
  expect(await inTail()).toEqual([
    { tag: second.tag, changes: false },
    { tag: third, changes: true },
  ]);
  expect(await virtual.store.commit(second)).toMatchObject({ isOk: true });
  expect((await virtual.other.read(host.host, first)).tail.kind).toBe("book");
});
