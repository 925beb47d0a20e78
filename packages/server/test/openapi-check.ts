import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

interface Document {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema?: object }> }> }>
  >;
  components: { schemas: Record<string, object> };
}

interface Answered {
  readonly method: string;
  readonly path: string;
  readonly response: Response;
  readonly text: string;
}

interface Compiled {
  readonly document: Document;
  readonly ajv: Ajv2020;
  readonly checks: Map<string, ValidateFunction>;
}

const compiled = new Map<string, Compiled>();

/**
 * Checks a real answer against the served document, with an independent validator: the status is documented for the
 * route, the content type is the documented one, and the body matches the schema.
 */
export async function checkedAgainstDocument(url: string, { method, path, response, text }: Answered): Promise<void> {
  const { document, ajv, checks } = await documentOf(url);
  const [plainPath = ""] = path.split("?");
  const item =
    document.paths[plainPath] ?? Object.entries(document.paths).find(([known]) => fits(known, plainPath))?.[1];
  const operation = item?.[method === "HEAD" ? "get" : method.toLowerCase()];
  const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
  if (operation === undefined) {
    // Statuses that are not in the document: a refusal, in the shape of all refusals, or a preflight.
    if (response.status !== 204) validate(problemOf(ajv), text, `${method} ${path}`);
    return;
  }
  const documented = operation.responses[response.status];
  if (documented === undefined)
    throw new Error(`${method} ${path} answered ${response.status}, which is not documented: ${text}`);
  const content = documented.content?.[type];
  if (documented.content !== undefined && content === undefined) {
    throw new Error(`${method} ${path} answered ${type}, which is not documented for ${response.status}`);
  }
  if (content?.schema !== undefined && method !== "HEAD") {
    const what = `${method} ${plainPath} ${response.status}`;
    const check = checks.get(what) ?? ajv.compile(absolute(content.schema));
    checks.set(what, check);
    validate(check, text, what);
  }
}

function fits(template: string, path: string): boolean {
  return new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
}

function validate(check: ValidateFunction, text: string, what: string): void {
  if (!check(JSON.parse(text)))
    throw new Error(`${what} does not fit the document: ${JSON.stringify(check.errors)}\n${text}`);
}

function problemOf(ajv: Ajv2020): ValidateFunction {
  return ajv.compile({ $ref: "document#/components/schemas/Problem" });
}

async function documentOf(url: string): Promise<Compiled> {
  const known = compiled.get(url);
  if (known !== undefined) return known;
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  ajv.addSchema({ $id: "document", components: document.components });
  const entry: Compiled = { document, ajv, checks: new Map() };
  compiled.set(url, entry);
  return entry;
}

function absolute(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object;
}
