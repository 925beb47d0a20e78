import type { IncomingMessage } from "node:http";

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Converts an absolute-form target (`GET http://host/path`) to the usual form. Its host becomes the host of the request, and the `Host` header is ignored (RFC 9112, 3.2.2). So all later checks see the same host.
 */
export function normaliseTarget(request: IncomingMessage): void {
  const { url = "/" } = request;
  if (url.startsWith("/")) return;
  const [, authority, rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return;
  request.headers.host = authority.slice(authority.lastIndexOf("@") + 1);
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
}

/** Without exactly one `Host`, two readers of the same request may see different hosts. HTTP/1.0 needs none. */
export function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}
