/** How a call names the host: by its name, or only by its hash. */
export type NamedHost = { readonly hostname: string } | { readonly hostnameHash: string };

/**
 * The hash is the SHA-256, in hex, of the lower-cased name without a trailing dot. The service computes the same for a
 * name.
 */
export async function namedHost(hostname: string, isHashed: boolean | undefined): Promise<NamedHost> {
  if (!isHashed) return { hostname };
  const bytes = new TextEncoder().encode(hostname.toLowerCase().replace(/\.$/, ""));
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return { hostnameHash: hex.join("") };
}
