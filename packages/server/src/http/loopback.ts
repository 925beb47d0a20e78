/** Whether an address of a socket can only be reached from this machine. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  return plain === "::1" || plain.startsWith("127.");
}
