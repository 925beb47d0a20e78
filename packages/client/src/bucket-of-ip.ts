/** The bucket of a client by its address: its network, in one notation. */
import { unexpected } from "./options.ts";

/** How many bits of an address identify a client. */
export interface BucketOptions {
  /** Bits of an IPv4 address that identify the client. Default: 32. */
  readonly v4?: number;
  /**
   * Bits of an IPv6 address that identify the client. Default: 60, because a household or a server has its own /64 to
   * /56.
   */
  readonly v6?: number;
}

/**
 * The bucket of a client by its address: `203.0.113.4/32`, `2001:db8:0:1230::/60`. An IPv4 address mapped into IPv6
 * counts as IPv4.
 *
 * @throws {TypeError} if `ip` is not an IP address.
 * @example
 * bucketOfIp("2001:db8:0:1234::1"); // "2001:db8:0:1230::/60"
 */
export function bucketOfIp(ip: string, { v4 = 32, v6 = 60 }: BucketOptions = {}): string {
  let address: bigint;
  try {
    // Refuses everything that is more than an address in a URL. A zone such as `%eth0` is local and is dropped.
    const [, plain = ""] = /^([\da-f:.]+)(?:%\w+)?$/i.exec(ip) ?? [];
    address = numberOf(spelled(plain.includes(":") ? plain : `::ffff:${plain}`));
  } catch {
    throw unexpected("ip", "an IP address", ip);
  }
  // `::ffff:0:0/96` contains the IPv4 addresses.
  const isV4 = address >> 32n === 0xffffn;
  const bits = isV4 ? v4 : v6;
  const rest = (isV4 ? 32 : 128) - bits;
  if (!(bits >= 0 && rest >= 0)) throw unexpected(isV4 ? "v4" : "v6", "a length that fits", bits);
  const network = (address >> BigInt(rest)) << BigInt(rest);
  const groups = network.toString(16).padStart(32, "0").match(/.{4}/g) ?? [];
  return `${isV4 ? new URL(`http://${network & 0xffffffffn}`).hostname : spelled(groups.join(":"))}/${bits}`;
}

/** Uses the URL parser: every host has one, it is strict, and it writes each address in one way. */
function spelled(ip: string): string {
  return new URL(`http://[${ip}]`).hostname.slice(1, -1);
}

/** In `a:b::c`, `::` stands for zeros. */
function numberOf(address: string): bigint {
  const [head, tail] = address
    .split("::")
    .map((half) => half.replace(/\w+:?/g, (group) => group.replace(":", "").padStart(4, "0")));
  return BigInt(`0x${head}${tail === undefined ? "" : tail.padStart(32 - (head ?? "").length, "0")}`);
}
