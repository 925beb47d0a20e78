/** How a call names the host: plainly, or by its hash alone. */
export type NamedHost = { readonly hostname: string } | { readonly hostnameHash: string };

export async function namedHost(hostname: string, isHashed: boolean): Promise<NamedHost> {
  return isHashed ? { hostnameHash: await hashOf(hostname) } : { hostname };
}

/** SHA-256 hex of the lower-cased name without a trailing dot, as the service makes it of a plain name. */
async function hashOf(hostname: string): Promise<string> {
  const bytes = new TextEncoder().encode(hostname.toLowerCase().replace(/\.$/, ""));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
