import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { acquire, openPage, startService } from "./dashboard-fixture.ts";

const seen = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });
const TOKEN = "an-internal-token-of-some-length";

/** Everything axe has rules for: none may be broken, however small. */
async function broken(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

describe("the token", () => {
  it("is asked for, refused when wrong, and kept in memory only", async () => {
    const service = await startService({ internalApiToken: TOKEN });
    await acquire(service, { hostname: "busy.example" });
    const { page, requests } = await openPage(`${service.url}/#/hosts`);
    const input = page.getByLabel(/internalApiToken/);
    await input.fill("wrong-token");
    await page.getByRole("button", { name: "Show the dashboard" }).click();
    await page.getByText("The service did not accept this token.").waitFor();
    expect(await page.getByText("busy.example").count()).toBe(0);
    await input.fill(TOKEN);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "busy.example" }).waitFor();
    expect(requests.filter((url) => url.includes(TOKEN))).toEqual([]);
    const kept = await page.evaluate(
      "JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }, document.cookie])",
    );
    expect(kept).not.toContain(TOKEN);
    await page.reload();
    await page.getByLabel(/internalApiToken/).waitFor();
  });

  it("guards data and events, not the static shell", async () => {
    const service = await startService({ internalApiToken: TOKEN });
    for (const path of ["state", "history", "instances", "events"]) {
      expect((await fetch(`${service.url}/api/v0/${path}`)).status).toBe(404);
    }
    const shell = await fetch(service.url);
    expect(shell.status).toBe(200);
    expect(await shell.text()).not.toContain("busy");
  });
});

describe("another site", () => {
  it("cannot read or change anything through the browser of a user on this machine", async () => {
    const service = await startService();
    await acquire(service, { hostname: "busy.example" });
    const evil = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<title>x</title>"));
    await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
    try {
      const { page } = await openPage(`http://localhost:${(evil.address() as AddressInfo).port}/`);
      const attempt = (path: string, init: object) =>
        page.evaluate(
          ([url, options]) =>
            fetch(url as string, options as RequestInit).then(
              (answer) => answer.type,
              () => "refused",
            ),
          [`${service.url}/api/v0/${path}`, init] as const,
        );
      expect(await attempt("state", {})).toBe("refused");
      expect(await attempt("events", {})).toBe("refused");
      const body = JSON.stringify({ maxSlotPerHost: 1 });
      expect(await attempt("hosts/busy.example", { method: "POST", body })).toBe("refused");
      await attempt("hosts/busy.example", { method: "POST", body, mode: "no-cors" });
      const response = await fetch(`${service.url}/api/v0/state?host=busy.example`);
      expect(((await response.json()) as { hosts: { limit: number }[] }).hosts[0]?.limit).toBe(5);
      const framed = await page.evaluate(async (url) => {
        const frame = document.createElement("iframe");
        frame.src = url;
        document.body.append(frame);
        await new Promise((resolve) => frame.addEventListener("load", resolve));
        return frame.contentDocument === null ? "kept out" : "readable";
      }, service.url);
      expect(framed).toBe("kept out");
    } finally {
      evil.close();
    }
  });
});

describe("hostile names", () => {
  const names = [
    `<img src=x onerror="document.title='owned'">`,
    "\u202egnp.exe\u2066.example",
    "\u200b\u200fzero.example",
    "広".repeat(255),
    "'\"><script>document.title='owned'</script>",
  ];

  it("are shown harmlessly on every page, and break no layout", async () => {
    const service = await startService();
    for (const name of names) {
      for (const bucket of [...names, "more", "again"]) await acquire(service, { hostname: name, ipBucket: bucket });
    }
    const { page, complaints } = await openPage(`${service.url}/#/`);
    const widths = () => page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    await page.getByRole("heading", { name: "Look here first" }).waitFor();
    expect((await widths())[0]).toBeLessThanOrEqual((await widths())[1] ?? 0);
    await page.goto(`${service.url}/#/hosts`);
    await seen(() => page.getByRole("table").getByRole("link").count()).toBe(names.length);
    expect(await page.getByRole("table").innerText()).toContain("\\u{202e}gnp.exe\\u{2066}.example");
    expect((await widths())[0]).toBeLessThanOrEqual((await widths())[1] ?? 0);
    for (let index = 0; index < names.length; index++) {
      await page.goto(`${service.url}/#/hosts`);
      await page.getByRole("table").getByRole("link").nth(index).click();
      await page.getByRole("heading", { name: "Queue by bucket" }).waitFor();
      await page
        .getByRole("button", { name: /^Revoke the slot/ })
        .first()
        .click();
      await page.getByRole("dialog").waitFor();
      expect((await widths())[0]).toBeLessThanOrEqual((await widths())[1] ?? 0);
      const shown = await page.locator("body").innerText();
      expect(shown).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u200f]/);
      await page.keyboard.press("Escape");
    }
    expect(await page.title()).toBe("Slotkeeper");
    expect(complaints).toEqual([]);
  });
});

describe("axe", () => {
  it.each(["light", "dark"] as const)(
    "finds nothing on any page, in %s colours",
    async (colorScheme) => {
      const service = await startService();
      for (let index = 0; index < 8; index++)
        await acquire(service, { hostname: "busy.example", ipBucket: `b${index}` });
      const breaker = `${service.url}/api/v0/hosts/paused.example/breaker?new=true`;
      expect((await fetch(breaker, { method: "POST", body: `{"state":"open"}` })).status).toBe(204);
      const { page } = await openPage(service.url, { colorScheme });
      await page.getByRole("heading", { name: "Look here first" }).waitFor();
      expect(await broken(page)).toEqual([]);
      await page.getByRole("navigation").getByRole("link", { name: "Hosts" }).click();
      await page.getByRole("link", { name: "busy.example" }).waitFor();
      expect(await broken(page)).toEqual([]);
      await page.getByRole("link", { name: "busy.example" }).click();
      await page.getByRole("heading", { name: "How long they waited" }).waitFor();
      expect(await broken(page)).toEqual([]);
      await page.getByRole("button", { name: "Change limits…" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await broken(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("navigation").getByRole("link", { name: "Instances" }).click();
      await page.getByText("(this one)").waitFor();
      expect(await broken(page)).toEqual([]);
    },
    90_000,
  );

  it("finds nothing in the empty state, the token prompt, and while the service is away", async () => {
    const empty = await openPage((await startService()).url);
    await empty.page.getByRole("heading", { name: "No slot has been requested yet" }).waitFor();
    expect(await broken(empty.page)).toEqual([]);
    await empty.page.route("**/api/**", (route) => route.abort());
    await empty.page.reload();
    await empty.page.getByRole("button", { name: "Try now" }).waitFor();
    expect(await broken(empty.page)).toEqual([]);
    const guarded = await openPage((await startService({ internalApiToken: TOKEN })).url);
    await guarded.page.getByLabel(/internalApiToken/).waitFor();
    expect(await broken(guarded.page)).toEqual([]);
  });
});

describe("the keyboard", () => {
  it("alone leads from the start to a host's action and back", async () => {
    const service = await startService();
    await acquire(service, { hostname: "busy.example", ipBucket: "a" });
    const { page } = await openPage(service.url);
    await page.getByRole("heading", { name: "Look here first" }).waitFor();
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.innerText")).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    const tabTo = async (name: RegExp) => {
      for (let step = 0; step < 40; step++) {
        await page.keyboard.press("Tab");
        const label = await page.evaluate(
          "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText",
        );
        if (name.test(String(label))) return;
      }
      throw new Error(`no Tab leads to ${name}`);
    };
    await tabTo(/^busy\.example$/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "busy.example" }).waitFor();
    await tabTo(/^Revoke the slot of a/);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await seen(() => page.getByRole("dialog").count()).toBe(0);
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toMatch(/^Revoke the slot of a/);
  });
});
