import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Settings } from "typebox/system";
import { type FieldProblem, problemOf } from "./field-problem.ts";

// Lists all problems at once; by default the library stops at eight.
Settings.Set({ maxErrors: 1000 });

type Checked<T> = { readonly value: T } | { readonly problems: readonly FieldProblem[] };

export interface Validator<T> {
  check(value: unknown): Checked<T>;
}

/** A schema, compiled once. A valid value takes one generated function call; messages are created only for problems. */
export function validator<S extends TSchema>(schema: S): Validator<Static<S>> {
  const compiled = Compile(schema);
  return {
    check(value) {
      if (compiled.Check(value)) return { value };
      const problems = new Map<string, FieldProblem>();
      for (const error of compiled.Errors(value)) {
        for (const problem of problemOf(schema, value, error)) {
          if (!problems.has(problem.field)) problems.set(problem.field, problem);
        }
      }
      return { problems: [...problems.values()] };
    },
  };
}
