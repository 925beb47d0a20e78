/** How a call names the host: plainly, or by its hash alone. */
export type NamedHost = { readonly hostname: string } | { readonly hostnameHash: string };

/** The hash is SHA-256 hex of the lower-cased name without a trailing dot, as the service makes it of a plain name. */
export async function namedHost(hostname: string, isHashed: boolean | undefined): Promise<NamedHost> {
  if (!isHashed) return { hostname };
  const bytes = new TextEncoder().encode(hostname.toLowerCase().replace(/\.$/, ""));
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return { hostnameHash: hex.join("") };
}
