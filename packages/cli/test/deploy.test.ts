import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig, Service } from "@slotkeeper/server";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";

/** The files of `deploy/` are checked against this repository: paths, flags, variables, users. Docker and Kubernetes are not needed. */

const ROOT = new URL("../../../", import.meta.url);
const path = (file: string) => fileURLToPath(new URL(file, ROOT));
const read = (file: string) => readFileSync(path(file), "utf8");

/** Instructions with their arguments; lines that end in a backslash are joined. */
const dockerfile = read("deploy/docker/Dockerfile")
  .replaceAll("\\\n", " ")
  .split("\n")
  .filter((line) => line.trim() !== "" && !line.startsWith("#"))
  .map((line) => {
    const [, instruction = "", text = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return { instruction, text };
  });
const argumentsOf = (instruction: string) =>
  dockerfile.filter((one) => one.instruction === instruction).map(({ text }) => text);

describe("the Dockerfile", () => {
  it("has only known instructions, begins with FROM, and uses an image with a fixed digest", () => {
    const known = ["FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"];
    for (const { instruction } of dockerfile) expect(known).toContain(instruction);
    expect(dockerfile[0]?.instruction).toBe("FROM");
    for (const image of argumentsOf("FROM"))
      expect(image).toMatch(/^node:20\.\d+\.\d+-\w+-slim@sha256:[\da-f]{64}(?: AS \w+)?$/);
  });

  it("copies between stages that exist, and starts the command of the package without a shell and without root", () => {
    const stages = argumentsOf("FROM").flatMap((text) => / AS (\w+)$/.exec(text)?.[1] ?? []);
    for (const text of argumentsOf("COPY")) {
      const from = /^--from=(\w+)/.exec(text)?.[1];
      if (from !== undefined) expect(stages).toContain(from);
    }
    expect(argumentsOf("USER")).toEqual(["node"]);
    const [node, bin] = JSON.parse(argumentsOf("ENTRYPOINT")[0] ?? "") as string[];
    expect([node, existsSync(path((bin ?? "").replace("/app/node_modules/@slotkeeper", "packages")))]).toEqual([
      "node",
      true,
    ]);
    expect(JSON.parse(argumentsOf("CMD")[0] ?? "")).toEqual(["serve"]);
    expect(JSON.parse(/CMD (.*)$/.exec(argumentsOf("HEALTHCHECK")[0] ?? "")?.[1] ?? "")).toHaveLength(3);
  });

  it("packs every package that the command needs, and no private one", () => {
    const packed = [
      ...(argumentsOf("RUN")
        .join("\n")
        .match(/-w packages\/(\w+)/g) ?? []),
    ].map((flag) => flag.slice(12));
    const manifest = (name: string) =>
      JSON.parse(read(`packages/${name}/package.json`)) as { private?: boolean; dependencies?: object };
    const folders = new Map([["slotkeeper", "core"]]);
    const needed = new Set<string>();
    const need = (folder: string) => {
      if (needed.has(folder)) return;
      needed.add(folder);
      for (const name of Object.keys(manifest(folder).dependencies ?? {})) {
        if (/^(?:@slotkeeper\/|slotkeeper$)/.test(name)) need(folders.get(name) ?? name.slice("@slotkeeper/".length));
      }
    };
    need("cli");
    expect([...packed].sort()).toEqual([...needed].sort());
    for (const name of packed) expect(manifest(name).private).not.toBe(true);
  });
});

interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: { readonly [name: string]: string };
  readonly depends_on?: { readonly [name: string]: { readonly condition: string } };
  readonly volumes?: readonly string[];
  readonly build?: { readonly context: string; readonly dockerfile: string };
}

describe("compose.yaml", () => {
  const { services, volumes } = parse(read("deploy/docker/compose.yaml")) as {
    services: { [name: string]: ComposeService };
    volumes: object;
  };

  it("starts the services in order: database, migrations, roles, service", () => {
    const after = (name: string) =>
      Object.entries(services[name]?.depends_on ?? {}).map(([one, how]) => [one, how.condition]);
    expect(after("migrate")).toEqual([["database", "service_healthy"]]);
    expect(after("roles")).toEqual([["migrate", "service_completed_successfully"]]);
    expect(after("slotkeeper")).toEqual([["roles", "service_completed_successfully"]]);
  });

  it("gives the service variables that it knows, with a key, and contains no secret", () => {
    const environment = Object.fromEntries(
      Object.entries(services["slotkeeper"]?.environment ?? {}).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{(\w+):\?set it\}/g, "0123456789abcdef-$1"),
      ]),
    );
    const { settings, warnings } = loadConfig({ environment });
    expect(warnings).toEqual([]);
    expect(settings).toMatchObject({ listen: { host: undefined, port: 8080 }, backend: { mode: "postgres" } });
    expect(settings.auth?.keys).toEqual(["0123456789abcdef-SHARED_KEY"]);
    expect(read("deploy/docker/compose.yaml")).not.toMatch(/(?:PASSWORD|TOKEN|KEY): (?!\$\{)/);
  });

  it("mounts and builds what exists", () => {
    for (const { volumes: mounts = [], build: built } of Object.values(services)) {
      for (const mount of mounts) {
        const [source = ""] = mount.split(":");
        const isNamed = Object.keys(volumes).includes(source);
        expect([source, isNamed || existsSync(path(`deploy/docker/${source}`))]).toEqual([source, true]);
      }
      if (built !== undefined) expect(existsSync(path(built.dockerfile))).toBe(true);
    }
  });
});

interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: { readonly [file: string]: string };
  readonly spec?: {
    readonly selector?: { readonly matchLabels?: object };
    readonly template?: { readonly metadata?: { readonly labels: object }; readonly spec: PodSpec };
  };
}

interface PodSpec {
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext: { readonly runAsNonRoot: boolean };
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly env: readonly {
      readonly name: string;
      readonly valueFrom: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
    }[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
    readonly livenessProbe?: { readonly httpGet: { readonly path: string } };
  }[];
}

interface ScrapeJob {
  readonly metrics_path: string;
  readonly authorization: { readonly type: string; readonly credentials_file: string };
  readonly kubernetes_sd_configs: readonly { readonly selectors: readonly { readonly label: string }[] }[];
  readonly relabel_configs: readonly { readonly regex: string }[];
}

describe("the Kubernetes manifest", () => {
  const documents = parseAllDocuments(read("deploy/kubernetes/slotkeeper.yaml"));
  const objects = documents.map((document) => document.toJS() as KubernetesObject);
  const one = (kind: string) => objects.find((object) => object.kind === kind) as KubernetesObject;
  const service = one("Deployment").spec?.template?.spec.containers[0];

  it("is valid YAML with one object of each kind", () => {
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    expect(objects.map(({ kind }) => kind)).toEqual([
      "ConfigMap",
      "Job",
      "Deployment",
      "Service",
      "PodDisruptionBudget",
    ]);
  });

  it("has a configuration and variables that the service accepts without a warning", () => {
    const flags = JSON.parse(one("ConfigMap").data?.["config.json"] ?? "") as object;
    const value = (name: string) => (name.endsWith("DSN") ? "postgres://u:p@db/slots" : `${name}-0123456789abcdef`);
    const environment = Object.fromEntries((service?.env ?? []).map(({ name }) => [name, value(name)]));
    const { settings, warnings } = loadConfig({ flags: { ...flags }, environment });
    expect(warnings).toEqual([]);
    expect(settings.auth?.keys).toHaveLength(1);
    expect(service?.args).toEqual(["serve", "-c", "/etc/slotkeeper/config.json"]);
  });

  it("answers the scrape job of deploy/prometheus, and only with the token of its secret", async () => {
    const { scrape_configs: jobs } = parse(read("deploy/prometheus/scrape.yml")) as { scrape_configs: ScrapeJob[] };
    const [job] = jobs as [ScrapeJob];
    const secretOf = (key: string) => `0123456789abcdef-${key}`;
    const flags = JSON.parse(one("ConfigMap").data?.["config.json"] ?? "") as object;
    const variables = (service?.env ?? []).filter(({ name }) => !name.endsWith("DSN"));
    const environment = Object.fromEntries(
      variables.map(({ name, valueFrom }) => [name, secretOf(valueFrom.secretKeyRef.key)]),
    );
    const running = await Service.start({
      flags: { ...flags, listen: "127.0.0.1:0" },
      environment,
      log: { write: () => {}, isJson: true, hasColours: false },
    });
    try {
      const statusOf = async (headers: Record<string, string>) =>
        (await fetch(`${running.url}${job.metrics_path}`, { headers })).status;
      const { type, credentials_file: file } = job.authorization;
      expect(await statusOf({ authorization: `${type} ${secretOf(basename(file))}` })).toBe(200);
      expect(await statusOf({})).toBe(404);
    } finally {
      await running.stop();
    }
    const labels = Object.entries(one("Deployment").spec?.selector?.matchLabels ?? {});
    const selector = labels.map(([label, value]) => `${label}=${value}`).join(",");
    expect(job.kubernetes_sd_configs[0]?.selectors[0]?.label).toBe(selector);
    expect(service?.ports.map(({ name }) => name)).toEqual([job.relabel_configs[0]?.regex]);
  });

  it("uses the right probe routes, leaves time to stop, and does not run as root", () => {
    expect(service?.readinessProbe?.httpGet.path).toBe("/readyz");
    expect(service?.livenessProbe?.httpGet.path).toBe("/livez");
    for (const { spec } of [one("Deployment"), one("Job")]) {
      expect(spec?.template?.spec.securityContext.runAsNonRoot).toBe(true);
    }
    expect(one("Deployment").spec?.template?.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(15);
  });

  it("selects the pods that it creates", () => {
    const { selector, template } = one("Deployment").spec ?? {};
    expect(template?.metadata?.labels).toMatchObject(selector?.matchLabels ?? { missing: "selector" });
    expect(one("Service").spec?.selector).toEqual(selector?.matchLabels);
    expect(one("PodDisruptionBudget").spec?.selector?.matchLabels).toEqual(selector?.matchLabels);
  });
});

describe("the systemd unit", () => {
  const unit = "deploy/systemd/slotkeeper.service";

  it("starts the package's command, reloads by SIGHUP, and does not restart after errors that a restart cannot fix", () => {
    const text = read(unit);
    const [, bin = ""] =
      /^ExecStart=\S+ \/opt\/slotkeeper\/node_modules\/@slotkeeper\/(\S+) serve -c /m.exec(text) ?? [];
    expect(existsSync(path(`packages/${bin}`))).toBe(true);
    expect(text).toMatch(/^ExecReload=.*-HUP \$MAINPID$/m);
    expect(text).toMatch(/^RestartPreventExitStatus=2 3$/m);
  });

  const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0 && existsSync("/usr/bin/node");
  it.skipIf(!hasSystemd)("is accepted by systemd-analyze (skipped if systemd or /usr/bin/node is missing)", () => {
    const { status, stderr } = spawnSync("systemd-analyze", ["verify", path(unit)], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
