import { signal } from "@preact/signals";

/** The part of the address after `#`, so that the service has only one page to serve. It never contains a token. */
export type Page =
  | { readonly name: "overview" }
  | { readonly name: "hosts" }
  | { readonly name: "host"; readonly key: string }
  | { readonly name: "instances" };

export const page = signal<Page>(pageOf(location.hash));

addEventListener("hashchange", () => {
  page.value = pageOf(location.hash);
  scrollTo(0, 0);
});

function pageOf(hash: string): Page {
  const [name = "", key = ""] = hash.replace(/^#\/?/, "").split("/");
  if (name === "hosts") return key === "" ? { name } : { name: "host", key: decoded(key) };
  return name === "instances" ? { name } : { name: "overview" };
}

export function addressOf(target: Page): string {
  if (target.name === "overview") return "#/";
  return target.name === "host" ? `#/hosts/${encodeURIComponent(target.key)}` : `#/${target.name}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
