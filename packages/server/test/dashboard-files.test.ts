import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { Service } from "@slotkeeper/server";
import { afterEach, describe, expect, it } from "vitest";
import { newFolder } from "./service-fixture.ts";

const PAGE = "<!doctype html><title>A dashboard</title>";
const SCRIPT = "console.log('dashboard')";
const services: Service[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.stop())));

/** A service with its own small build, so that the real one is not needed. */
async function serving(files: { readonly [name: string]: string | Buffer }): Promise<Service> {
  const folder = newFolder();
  mkdirSync(join(folder, "assets"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const log = { write: () => {}, isJson: true, hasColours: false };
  const service = await Service.start({ flags: { listen: "127.0.0.1:0" }, environment: {}, log, dashboard: folder });
  services.push(service);
  return service;
}

async function built(): Promise<Service> {
  const { brotliCompressSync, gzipSync } = await import("node:zlib");
  const script = "assets/index-abc.js";
  return serving({
    "index.html": PAGE,
    "secret.key": "not served",
    [script]: SCRIPT,
    [`${script}.br`]: brotliCompressSync(SCRIPT),
    [`${script}.gz`]: gzipSync(SCRIPT),
  });
}

/** `fetch` would decompress the answer and add headers. */
async function get(service: Service, path: string, headers: Record<string, string> = {}, method = "GET") {
  const { request } = await import("node:http");
  return new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    const call = request(service.url + path, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    call.on("error", reject);
    call.end();
  });
}

describe("the dashboard's page", () => {
  it("allows no inline script or style, nothing from other origins, and no frame around it", async () => {
    const { status, headers, body } = await get(await built(), "/");
    expect([status, body.toString()]).toEqual([200, PAGE]);
    const policy = String(headers["content-security-policy"]);
    for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
      expect(policy.split("; ")).toContain(rule);
    }
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
  });

  it("is revalidated each time, and answered with 304 if it is unchanged", async () => {
    const service = await built();
    const { headers } = await get(service, "/");
    expect(headers["cache-control"]).toBe("no-cache");
    const etag = String(headers["etag"]);
    const again = await get(service, "/", { "If-None-Match": etag });
    expect([again.status, again.body.length]).toEqual([304, 0]);
    expect((await get(service, "/", { "If-None-Match": `W/${etag}` })).status).toBe(304);
    expect((await get(service, "/", { "If-None-Match": '"other"' })).status).toBe(200);
  });

  it("explains how to build it if it was not built", async () => {
    const { status, body, headers } = await get(await serving({}), "/");
    expect([status, body.toString()]).toEqual([200, expect.stringContaining("npm run build")]);
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
  });
});

describe("an asset of the dashboard", () => {
  it("is cached by browsers forever, because its name changes with its content", async () => {
    const { headers, body } = await get(await built(), "/assets/index-abc.js");
    expect(headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(body.toString()).toBe(SCRIPT);
  });

  it.each([
    ["br, gzip", "br", brotliDecompressSync],
    ["gzip, deflate", "gzip", gunzipSync],
    ["br;q=0, gzip;q=0.5", "gzip", gunzipSync],
    ["", undefined, (bytes: Buffer) => bytes],
  ])("is compressed as the caller accepts: %j", async (accepted, encoding, unpack) => {
    const service = await built();
    const { headers, body } = await get(service, "/assets/index-abc.js", { "Accept-Encoding": accepted });
    expect(headers["content-encoding"]).toBe(encoding);
    expect(headers["vary"]).toBe("Accept-Encoding");
    expect(unpack(body).toString()).toBe(SCRIPT);
  });

  it.each(["/assets/none.js", "/assets/..%2fsecret.key", "/assets/index-abc.js.br", "/secret.key", "/index.html"])(
    "%s does not exist",
    async (path) => {
      expect((await get(await built(), path)).status).toBe(404);
    },
  );

  it("allows GET and HEAD only", async () => {
    const service = await built();
    const head = await get(service, "/assets/index-abc.js", {}, "HEAD");
    expect([head.status, head.body.length, head.headers["content-length"]]).toEqual([200, 0, String(SCRIPT.length)]);
    expect((await get(service, "/assets/index-abc.js", {}, "POST")).status).toBe(405);
  });
});

describe("the state's sessions", () => {
  it("are returned in the requested number, from the requested position, in the order of the queue", async () => {
    const service = await serving({});
    const post = (body: object) =>
      fetch(`${service.url}/api/v0/fairqueue/acquire`, { method: "POST", body: JSON.stringify(body) });
    for (let index = 0; index < 12; index++) await post({ hostname: "example.com", ipBucket: `b${index}`, waitMs: 1 });
    const positions = async (query: string) => {
      const response = await fetch(`${service.url}/api/v0/state?host=example.com${query}`);
      const { hosts } = (await response.json()) as { hosts: { pending: number; sessions: { position: number }[] }[] };
      return [hosts[0]?.pending, hosts[0]?.sessions.map(({ position }) => position)];
    };
    expect(await positions("")).toEqual([7, [1, 2, 3, 4, 5, 6, 7]]);
    expect(await positions("&sessions=2&from=3")).toEqual([7, [4, 5]]);
    expect(await positions("&sessions=0")).toEqual([7, []]);
    const refused = await fetch(`${service.url}/api/v0/state?sessions=-1&from=x`);
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as { errors: object[] }).errors).toHaveLength(2);
  });
});
