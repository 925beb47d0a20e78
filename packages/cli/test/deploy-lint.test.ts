/** Runs the linters of their formats on the files of `deploy/`. `deploy.test.ts` checks them against this repository. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DCLinter } from "dclint";
import { validate } from "dockerfile-utils";
import * as appsV1 from "kubernetes-models/apps/v1";
import * as batchV1 from "kubernetes-models/batch/v1";
import * as policyV1 from "kubernetes-models/policy/v1";
import * as coreV1 from "kubernetes-models/v1";
import { afterAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";

const read = (file: string) => readFileSync(fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url)), "utf8");
const folder = mkdtempSync(join(tmpdir(), "slotkeeper-lint-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the Dockerfile", () => {
  const dockerfile = read("docker/Dockerfile");
  const problemsOf = (text: string) => validate(text).map(({ message }) => message);

  it("passes the language server's validator", () => {
    expect(problemsOf(dockerfile)).toEqual([]);
  });

  it.each([
    ["an unknown instruction", dockerfile.replace("EXPOSE", "EXPOSES"), "Unknown instruction: EXPOSES"],
    ["a wrong flag", dockerfile.replace("--interval=10s", "--interval=10"), "time: missing unit in duration 10"],
    ["an instruction without its argument", dockerfile.replace("USER node", "USER"), "Instruction has no arguments"],
  ])("the linter finds %s", (_, text, problem) => {
    expect(problemsOf(text)).toContain(problem);
  });
});

describe("compose.yaml", () => {
  const compose = read("docker/compose.yaml");

  /** All rules of the linter. Quotes are as in the rest of the repository. */
  const linter = new DCLinter({
    rules: { "require-quotes-in-ports": [2, { quoteType: "double" }] },
    quiet: true,
    debug: false,
    exclude: [],
  });
  const problemsOf = (text: string) => {
    const file = join(folder, "compose.yaml");
    writeFileSync(file, text);
    const results = linter.lintFiles([file], false) as { messages: { rule: string }[] }[];
    return results.flatMap(({ messages }) => messages.map(({ rule }) => rule));
  };

  it("passes dclint", () => {
    expect(problemsOf(compose)).toEqual([]);
  });

  it.each([
    ["a port for the whole network", compose.replace("127.0.0.1:8080", "8080"), "no-unbound-port-interfaces"],
    [
      "an image without a version",
      compose.replace("postgres:17.6-bookworm", "postgres"),
      "service-image-require-explicit-tag",
    ],
    ["a key that compose does not know", compose.replace("stop_grace_period:", "grace_period:"), "invalid-schema"],
  ])("the linter finds %s", (_, text, rule) => {
    expect(problemsOf(text)).toContain(rule);
  });
});

interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The models carry the schemas that the Kubernetes API publishes. They check types and required fields, not unknown ones. */
type Model = new (data: KubernetesObject) => { validate(): void };
const MODELS: { readonly [apiVersion: string]: { readonly [kind: string]: unknown } } = {
  v1: coreV1,
  "apps/v1": appsV1,
  "batch/v1": batchV1,
  "policy/v1": policyV1,
};

describe("the Kubernetes manifest", () => {
  const manifest = read("kubernetes/slotkeeper.yaml");

  const problemsOf = (text: string) =>
    parseAllDocuments(text).flatMap((document) => {
      const object = document.toJS() as KubernetesObject;
      const model = MODELS[object.apiVersion]?.[object.kind] as Model;
      try {
        new model(object).validate();
        return [];
      } catch (error) {
        return [`${object.kind}: ${(error as Error).message}`];
      }
    });

  it("has objects that match the API's schemas", () => {
    expect(problemsOf(manifest)).toEqual([]);
  });

  it.each([
    [
      "a port that is no number",
      manifest.replace(/containerPort: \d+/, "containerPort: http"),
      /Deployment: .*must be integer/,
    ],
    [
      "a missing selector",
      manifest.replace(/ {2}selector:\n {4}matchLabels:/, "  selectors:\n    matchLabels:"),
      /selector/,
    ],
  ])("the linter finds %s", (_, text, problem) => {
    expect(problemsOf(text).join("\n")).toMatch(problem);
  });
});
