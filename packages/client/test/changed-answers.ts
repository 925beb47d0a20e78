/** Answers of the service, valid and changed, for tests of what the clients accept. */
import * as fc from "fast-check";
import { granted, pending } from "./scripted-service.ts";

const valid: object[] = [
  pending,
  { ...pending, estimatedWaitMs: 5 },
  granted,
  { ...granted, charged: { tokens: 5 } },
  { result: "throttled", throttleCode: 503, throttleRetryAfter: 5, reason: "errors" },
  { result: "timeout", reason: "deadline" },
  { result: "overloaded", retryAfter: 5 },
  { result: "ok" },
];
const fields = [...new Set(valid.flatMap((answer) => Object.keys(answer)))];
const values = fc.oneof(
  fc.constantFrom(
    0,
    1,
    -1,
    30,
    31,
    1.5,
    1e300,
    "",
    "x",
    { tokens: 1 },
    { tokens: -1 },
    { tokens: "1" },
    "x".repeat(22),
    null,
    undefined,
    [],
    {},
    "granted",
  ),
  fc.jsonValue(),
);
/** A valid answer with some fields changed or removed, or any JSON. */
const changed = fc
  .tuple(fc.constantFrom(...valid), fc.dictionary(fc.constantFrom(...fields), values, { maxKeys: 3 }))
  .map(([answer, changes]): unknown => JSON.parse(JSON.stringify({ ...answer, ...changes })));
/** Answers of which some fit the schemas. */
export const changedAnswers = fc.oneof({ weight: 6, arbitrary: changed }, { weight: 1, arbitrary: fc.jsonValue() });
