import * as z from "zod";
import type { Problem } from "./check.ts";
import type { DefaultValue, WireType } from "./dsl.ts";

const doc = z.string().refine((text) => text.trim() !== "", "needs a sentence of documentation");
const wellFormed = z
  .string()
  .min(1, "must not be empty")
  .refine((text) => !/\p{Surrogate}/u.test(text), "must be text that UTF-8 can hold");
const name = wellFormed;
const release = z.string().regex(/^\d+\.\d+\.\d+$/, "must be a release such as 0.1.0");

const scalars = ["bool", "i32", "u16", "u32", "i64", "u64", "f64", "str", "bytes", "tensor", "any", "dict", "strOrList"] as const;
const wireType: z.ZodType<WireType> = z.lazy(() =>
  z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.enum(scalars) }),
    z.strictObject({ kind: z.enum(["list", "set"]), item: wireType }),
    z.strictObject({ kind: z.literal("tuple"), items: z.array(wireType) }),
    z.strictObject({ kind: z.literal("map"), value: wireType }),
    z.strictObject({ kind: z.literal("nullable"), inner: wireType }),
    z.strictObject({ kind: z.literal("literal"), values: z.array(z.union([wellFormed.or(z.literal("")), z.number()])) }),
    z.strictObject({ kind: z.literal("struct"), name }),
  ]),
);

const defaultValue: z.ZodType<DefaultValue> = z.lazy(() =>
  z.union([
    z.null(),
    z.boolean(),
    z.custom<number>((value) => typeof value === "number"),
    z.bigint(),
    z.string(),
    z.array(defaultValue),
    z.record(z.string(), defaultValue),
  ]),
);

const field = z.strictObject({
  name,
  type: wireType,
  doc,
  default: defaultValue.optional(),
  property: name.optional(),
  python: name.optional(),
  alias: name.optional(),
});

const struct = z.strictObject({
  name,
  doc,
  layout: z.enum(["array", "map"]),
  tagged: z.boolean().optional(),
  extends: z.strictObject({ name, doc, fields: z.array(field) }).optional(),
  python: name.optional(),
  definedIn: name.optional(),
  fields: z.array(field),
});

const rule = { field: name, because: doc };
const limit = z.int();
const refused = z.discriminatedUnion("when", [
  z.strictObject({ ...rule, when: z.enum(["empty", "an item is empty"]) }),
  z.strictObject({ ...rule, when: z.literal("an item is not one of"), values: z.array(wellFormed).min(1) }),
  z.strictObject({ ...rule, when: z.enum(["below", "above", "an item is below"]), limit }),
  z.strictObject({ ...rule, when: z.enum(["not below", "of another length than", "set without"]), other: name }),
]);

const operation = z.strictObject({
  name,
  request: struct,
  reply: struct,
  effect: z.enum(["read", "admission", "memory", "weights", "profile"]),
  answers: z.enum(["at once", "drained", "gated"]),
  timeoutMs: z.int("must be a whole number of milliseconds").positive("must be more than 0"),
  repeatable: z.boolean(),
  since: release,
  summary: doc,
  doc,
  slim: z
    .strictObject({
      method: name,
      rename: z.record(z.string(), name).optional(),
      choice: z.strictObject({ field: name, value: z.int(), otherwise: name }).optional(),
    })
    .optional(),
  endsDrain: z.boolean().optional(),
  unpickles: z.literal(true).optional(),
  refuses: z.array(refused).optional(),
});

const protocol = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]*$/, "must be a folder's name: small letters, digits and hyphens"),
  release,
  doc,
  structs: z.array(struct),
  values: z.array(z.strictObject({ name, type: wireType, doc })).optional(),
  operations: z.array(operation),
  unions: z.array(z.strictObject({ name, doc, members: z.union([z.enum(["requests", "replies"]), z.array(struct)]) })),
  leavesOut: z.array(name).optional(),
  releases: z
    .array(
      z.strictObject({
        protocol: name,
        release,
        source: doc,
        bases: z.record(z.string(), z.array(name)),
        structs: z.array(
          z.strictObject({
            name,
            layout: z.enum(["array", "map"]),
            tagged: z.literal(true).optional(),
            python: name.optional(),
            definedIn: name.optional(),
            base: name.optional(),
            fields: z.array(name),
          }),
        ),
        leavesOut: z.array(name),
      }),
    )
    .optional(),
  constants: z.array(z.strictObject({ name, value: z.union([z.number(), wellFormed]), doc })),
  files: z.array(z.enum(["types.ts", "encoders.ts", "decoders.ts", "replies.ts", "operations.ts", "zod.ts"])).optional(),
});

/** What in a protocol has not the shape that `dsl.ts` describes. */
export function findShapeProblems(definition: unknown): Problem[] {
  const open = findUndecided(definition, definition, []);
  if (open.length > 0) return open;
  const result = protocol.safeParse(definition);
  if (result.success) return [];
  const problems = result.error.issues.map(({ path, message }) => ({ place: placeOf(definition, path), text: message }));
  return [...new Map(problems.map((problem) => [`${problem.place}: ${problem.text}`, problem])).values()];
}

/** What a person still has to decide; a struct that several hold is named once. */
function findUndecided(definition: unknown, value: unknown, path: readonly PropertyKey[]): Problem[] {
  if (typeof value !== "object" || value === null) return [];
  if ("decide" in value && typeof value.decide === "string") {
    return [{ place: placeOf(definition, path), text: `a person has to decide: ${value.decide}` }];
  }
  return Object.entries(value).flatMap(([step, item]) =>
    findUndecided(definition, item, [...path, Array.isArray(value) ? Number(step) : step]),
  );
}

/** A path with the names of list entries instead of their numbers. */
function placeOf(definition: unknown, path: readonly PropertyKey[]): string {
  let at: unknown = definition;
  const steps = [nameOf(definition) ?? "protocol"];
  for (const step of path) {
    at = typeof at === "object" && at !== null ? (at as { readonly [step: PropertyKey]: unknown })[step] : undefined;
    steps.push(typeof step === "number" ? (nameOf(at) ?? String(step)) : String(step));
  }
  return steps.join(".");
}

function nameOf(value: unknown): string | undefined {
  return typeof value === "object" && value !== null && "name" in value && typeof value.name === "string" ? value.name : undefined;
}
