import type { ServiceState } from "@slotkeeper/protocol";
import type { Service } from "@slotkeeper/server";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { acquire, openPage, startService } from "./dashboard-fixture.ts";

const seen = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });

async function stateOf(service: Service, host: string) {
  const response = await fetch(`${service.url}/api/v0/state?host=${host}`);
  return ((await response.json()) as ServiceState).hosts[0];
}

/** The page of a host with two slots in use. */
async function hostPage(): Promise<{ service: Service; page: Page }> {
  const service = await startService();
  for (const ipBucket of ["a", "b"]) await acquire(service, { hostname: "busy.example", ipBucket });
  const host = (await stateOf(service, "busy.example"))?.host ?? "";
  const { page } = await openPage(`${service.url}/#/hosts/${host}`);
  await page.getByRole("heading", { name: "busy.example" }).waitFor();
  return { service, page };
}

describe("changing the limits", () => {
  it("happens only after a confirmation, and is shown with its origin", async () => {
    const { service, page } = await hostPage();
    await page.getByRole("button", { name: "Change limits…" }).click();
    await page.getByLabel("Slots of this host").fill("9");
    await page.getByRole("button", { name: "Cancel" }).click();
    expect((await stateOf(service, "busy.example"))?.limit).toBe(5);
    await page.getByRole("button", { name: "Change limits…" }).click();
    await page.getByLabel("Slots of this host").fill("9");
    await page.getByLabel("Slots of one bucket (0: no limit)").fill("0");
    await page.getByRole("button", { name: "Apply in the whole fleet" }).click();
    await page.getByText("The limits were changed.").waitFor();
    expect((await stateOf(service, "busy.example"))?.limits).toEqual({
      maxSlotPerHost: { value: 9, origin: "live" },
      maxSlotPerIp: { value: 0, origin: "live" },
    });
    await seen(() => page.locator(".limits").innerText()).toMatch(/Limit 9 per host \(set live\), no limit per bucket/);
    await seen(() => page.locator(".cell").count()).toBe(9);
  });

  it("goes back to the configured values where a field is left empty", async () => {
    const { service, page } = await hostPage();
    const path = `${service.url}/api/v0/hosts/busy.example`;
    await fetch(path, { method: "POST", body: JSON.stringify({ maxSlotPerHost: 2 }) });
    await seen(() => page.locator(".limits").innerText()).toContain("Limit 2 per host (set live)");
    await page.getByRole("button", { name: "Change limits…" }).click();
    expect(await page.getByLabel("Slots of this host").inputValue()).toBe("2");
    await page.getByLabel("Slots of this host").fill("");
    await page.getByRole("button", { name: "Apply in the whole fleet" }).click();
    await seen(() => page.locator(".limits").innerText()).toContain("Limit 5 per host (default)");
  });

  it("has a main button that keeps its colour under the pointer", async () => {
    const { page } = await hostPage();
    await page.getByRole("button", { name: "Change limits…" }).click();
    const button = page.getByRole("button", { name: "Apply in the whole fleet" });
    const colour = () => button.evaluate((element) => getComputedStyle(element).backgroundColor);
    const before = await colour();
    await button.hover();
    expect(await colour()).toBe(before);
  });

  it("shows why the service refused, and keeps the dialog open", async () => {
    const { page } = await hostPage();
    await page.route("**/api/v0/hosts/**", (route) =>
      route.fulfill({
        status: 503,
        body: JSON.stringify({ title: "Unavailable", detail: "The store did not answer" }),
      }),
    );
    await page.getByRole("button", { name: "Change limits…" }).click();
    await page.getByLabel("Slots of this host").fill("3");
    await page.getByRole("button", { name: "Apply in the whole fleet" }).click();
    await page.getByRole("dialog").getByText("The store did not answer").waitFor();
    await page.keyboard.press("Escape");
    await seen(() => page.getByRole("dialog").count()).toBe(0);
  });
});

describe("revoking a slot", () => {
  it("names the holder, asks, and frees the slot", async () => {
    const { service, page } = await hostPage();
    await page.getByRole("button", { name: /^Revoke the slot of a,/ }).click();
    const dialog = page.getByRole("dialog", { name: "Revoke this slot?" });
    expect(await dialog.innerText()).toMatch(/Bucket\s+a\s/);
    expect((await stateOf(service, "busy.example"))?.inFlight).toBe(2);
    await dialog.getByRole("button", { name: "Revoke the slot" }).click();
    await page.getByText("The slot was revoked.").waitFor();
    expect((await stateOf(service, "busy.example"))?.slots.map(({ bucket }) => bucket)).toEqual(["b"]);
    await seen(() => page.locator(".cell-holder").allInnerTexts()).toEqual(["b"]);
  });
});

describe("the breaker", () => {
  it("opens after a confirmation, counts down, and closes after another", async () => {
    const { service, page } = await hostPage();
    await page.getByRole("button", { name: "Open the breaker…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Open the breaker" }).click();
    await page.getByText("The breaker is open.", { exact: true }).waitFor();
    expect((await acquire(service, { hostname: "busy.example" })).result).toBe("throttled");
    const badge = page.locator(".host-title .breaker-open");
    const first = await badge.innerText();
    expect(first).toMatch(/open, (?:\d\d s|1 min) left/);
    await seen(() => badge.innerText()).not.toBe(first);
    await page.getByRole("button", { name: "Close the breaker…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close the breaker" }).click();
    await page.getByText("The breaker is closed.", { exact: true }).waitFor();
    expect((await acquire(service, { hostname: "busy.example", ipBucket: "c" })).result).toBe("granted");
  });
});

describe("a pause", () => {
  it("begins after a confirmation, is shown, and ends after another", async () => {
    const { service, page } = await hostPage();
    await page.getByRole("button", { name: "Pause…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByText("The host is paused.", { exact: true }).waitFor();
    expect((await acquire(service, { hostname: "busy.example", ipBucket: "c", waitMs: 50 })).result).toBe("pending");
    expect(await page.locator(".host-title .load-paused").innerText()).toBe("paused");
    await page.getByRole("button", { name: "Let it go on…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Let it go on" }).click();
    await page.getByText("The host grants slots again.", { exact: true }).waitFor();
    expect((await stateOf(service, "busy.example"))?.isPaused).toBe(false);
  });
});
