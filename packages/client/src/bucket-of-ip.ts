/** The bucket of a client by its address: its network, in one spelling. */

export interface BucketOptions {
  /** Bits of an IPv4 address that name the client. */
  readonly v4?: number;
  /** Bits of an IPv6 address that name the client: a household or a server gets a /64 to /56 of its own. */
  readonly v6?: number;
}

/** `203.0.113.4/32`, `2001:db8:0:1230::/60`. An IPv4 address mapped into IPv6 counts as IPv4. */
export function bucketOfIp(ip: string, { v4 = 32, v6 = 60 }: BucketOptions = {}): string {
  const groups = groupsOf(ip);
  if (groups === undefined) throw new TypeError(`Expected \`ip\` to be an IP address, got ${JSON.stringify(ip)}`);
  const isV4 = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isV4) {
    const [a = 0, b = 0] = masked(groups.slice(6), checked("v4", v4, 32));
    return `${[a >> 8, a & 255, b >> 8, b & 255].join(".")}/${v4}`;
  }
  const hex = masked(groups, checked("v6", v6, 128)).map((group) => group.toString(16));
  while (hex.at(-1) === "0") hex.pop();
  return `${hex.join(":")}${hex.length === 8 ? "" : "::"}/${v6}`;
}

function checked(name: string, bits: number, most: number): number {
  if (Number.isInteger(bits) && bits >= 0 && bits <= most) return bits;
  throw new RangeError(`Expected \`${name}\` to be an integer from 0 to ${most}, got ${String(bits)}`);
}

function masked(groups: readonly number[], bits: number): number[] {
  return groups.map((group, index) => group & (0xffff << Math.min(16, Math.max(0, 16 * (index + 1) - bits))));
}

/** Eight groups of 16 bits; IPv4 as `::ffff:a.b.c.d`. Undefined: not an address. */
function groupsOf(text: unknown): number[] | undefined {
  if (typeof text !== "string") return undefined;
  const address = text.replace(/%.*$/, "");
  const v4 = /^(?:(.*:))?(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address);
  if (v4 === null) return groupsOfV6(address);
  const [a = 0, b = 0, c = 0, d = 0] = v4.slice(2).map(Number);
  if (Math.max(a, b, c, d) > 255) return undefined;
  const low = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  return groupsOfV6((v4[1] ?? "::ffff:") + low);
}

function groupsOfV6(address: string): number[] | undefined {
  const halves = address.split("::");
  const [head, tail] = halves.map((half) => (half === "" ? [] : half.split(":")));
  if (head === undefined || halves.length > 2) return undefined;
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const all = [...head, ...Array.from({ length: tail === undefined ? 0 : missing }, () => "0"), ...(tail ?? [])];
  return all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))
    ? all.map((group) => Number.parseInt(group, 16))
    : undefined;
}
