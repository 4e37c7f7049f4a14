import { expect, test } from "vitest";
import { checkProtocol, SchemaError } from "../../schema/check.ts";
import {
  any,
  base,
  bool,
  bytes,
  constant,
  dict,
  f64,
  i64,
  list,
  literal,
  map,
  nullable,
  type ProtocolDefinition,
  ref,
  set,
  str,
  strOrList,
  tensor,
  tuple,
  u16,
  u64,
  union,
  value,
} from "../../schema/dsl.ts";
import { tokenspeed } from "../../schema/tokenspeed/index.ts";
import { call, plain, protocolOf, small } from "./small-schema.ts";

/** The problems of a protocol, one line each. */
function problemsOf(definition: ProtocolDefinition): string[] {
  try {
    checkProtocol(definition);
    return [];
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return error.problems.map(({ place, text }) => `${place}: ${text}`);
  }
}

const tagged = { layout: "array", tagged: true } as const;
const withField = (...args: Parameters<typeof plain>): ProtocolDefinition => protocolOf([small("S", [plain(...args)])]);

test("the schema of TokenSpeed is legal", () => {
  expect(checkProtocol(tokenspeed)).toBe(tokenspeed);
});

test("all problems are told at once, each with its place", () => {
  const definition = protocolOf([small("S", [plain("a", str, { default: 1 }), plain("constructor", str)])], {
    operations: [call("pause"), call("resume", { reply: small("PauseReply", [], tagged) })],
  });
  expect(() => checkProtocol(definition)).toThrow("4 problems in the schema:\n- tiny.structs.PauseReply: two structs");
  expect(problemsOf(definition)).toEqual([
    "tiny.structs.PauseReply: two structs have this name, and so this tag",
    "tiny.structs.S.fields.a.default: must be a string",
    "tiny.structs.S.fields.constructor: the property constructor is reserved; give the field another with `property`",
    "tiny.operations.resume.reply: PauseReply is the reply of pause already; a tag must name one operation",
  ]);
});

// One line for each kind of problem: what is defined, and what is said about it.
const cases: readonly (readonly [what: string, definition: ProtocolDefinition, problem: string])[] = [
  ["a tag twice", protocolOf([small("S", []), small("S", [])]), "structs.S: two structs have this name, and so this tag"],
  ["a name that is none", protocolOf([small("a-b", [])]), "structs.a-b: a struct's name must be a name in TypeScript"],
  ["a name of the runtime", protocolOf([small("StrList", [])]), "structs.StrList: generated code uses this name itself"],
  ["a name of another's init", protocolOf([small("A", []), small("AInit", [])]), "structs.AInit: its name AInit is taken by structs.A"],
  [
    "a union named like a struct",
    protocolOf([small("A", [], tagged)], { unions: [union("A", { doc: "x", members: [small("B", [], tagged)] })] }),
    "unions.A: its name A is taken by structs.A",
  ],
  ["an unknown struct", withField("a", list(ref("Missing"))), "structs.S.fields.a: there is no struct Missing"],
  [
    "a wire name twice",
    protocolOf([small("S", [plain("a", str), plain("a", str)])]),
    'structs.S.fields.a: the wire name "a" is taken by the field a',
  ],
  [
    "two names with one property",
    protocolOf([small("S", [plain("foo_bar", str), plain("fooBar", str)])]),
    "structs.S.fields.fooBar: the property fooBar is taken by the field foo_bar; give one of them another with `property`",
  ],
  ["a reserved property", withField("x", str, { property: "__proto__" }), "structs.S.fields.x: the property __proto__ is reserved"],
  ["a reserved property after conversion", withField("to_string", str), "structs.S.fields.to_string: the property toString is reserved"],
  ["the tag's property", withField("x", str, { property: "$tag" }), "structs.S.fields.x: the property $tag is reserved"],
  [
    "an alias that is another's name",
    protocolOf([small("S", [plain("a", str), plain("b", str, { alias: "a" })])]),
    'structs.S.fields.b: the wire name "a" is taken by the field a',
  ],
  [
    "an alias without keys",
    protocolOf([small("S", [plain("b", str, { alias: "c" })], { layout: "array" })]),
    "structs.S.fields.b: an alias means nothing where fields have no keys",
  ],
  ["a map with a tag", protocolOf([small("S", [], { tagged: true })]), "structs.S: a map with a tag cannot be decoded"],
  ["nullable twice", withField("a", nullable(nullable(str))), "structs.S.fields.a: nullable of nullable"],
  ["nullable any", withField("a", nullable(any)), "structs.S.fields.a: nullable of any"],
  ["a literal of nothing", withField("a", literal()), "structs.S.fields.a: a literal needs values"],
  ["a literal with one value twice", withField("a", literal("x", "x")), "structs.S.fields.a: a literal has one value twice"],
  ["a literal of a fraction", withField("a", literal(1.5)), "structs.S.fields.a: a literal's numbers must be safe integers"],
  ["a tuple of nothing", withField("a", tuple()), "structs.S.fields.a: a tuple needs items"],
  ["strOrList in a list", withField("a", list(strOrList)), "structs.S.fields.a: strOrList is a field's own type"],
  ["strOrList in a map", withField("a", map(nullable(strOrList))), "structs.S.fields.a: strOrList is a field's own type"],
  [
    "a struct that contains itself",
    protocolOf([small("A", [plain("b", ref("B"))]), small("B", [plain("a", tuple(ref("A")))])]),
    "structs.A: always contains another of itself",
  ],
  ["a default that is no boolean", withField("a", bool, { default: 0 }), "structs.S.fields.a.default: must be true or false"],
  ["a default that is no number", withField("a", f64, { default: "1" }), "structs.S.fields.a.default: must be a number"],
  ["a default that is no integer", withField("a", i64, { default: 1.5 }), "structs.S.fields.a.default: must be an integer within"],
  [
    "a default beyond the range",
    withField("a", u16, { default: 65536 }),
    "structs.S.fields.a.default: must be an integer within 0 .. 65535",
  ],
  [
    "a default beyond 64 bits",
    withField("a", u64, { default: 2n ** 64n }),
    "structs.S.fields.a.default: must be an integer within 0 .. 18446744073709551615",
  ],
  ["a default that is unsafe", withField("a", i64, { default: 2 ** 53 }), "structs.S.fields.a.default: must be an integer within"],
  ["a null default of a field without nil", withField("a", str, { default: null }), "structs.S.fields.a.default: must be a string"],
  ["a default outside a literal", withField("a", literal("x", 2), { default: "y" }), 'structs.S.fields.a.default: must be one of "x", 2'],
  ["a default with a wrong item", withField("a", list(str), { default: ["x", 1] }), "structs.S.fields.a.default: must be a string"],
  ["a default that is no list", withField("a", list(str), { default: "x" }), "structs.S.fields.a.default: must be a list"],
  ["a default of another length", withField("a", tuple(str, str), { default: ["x"] }), "structs.S.fields.a.default: must be a list of 2"],
  ["a default that is no map", withField("a", map(str), { default: [] }), "structs.S.fields.a.default: must be an object"],
  ["a default with a wrong value", withField("a", map(str), { default: { x: 1 } }), "structs.S.fields.a.default: must be a string"],
  [
    "a default that JavaScript reorders",
    withField("a", dict, { default: { x: { 1: "y" } } }),
    'structs.S.fields.a.default: must not have the key "1"',
  ],
  [
    "a default of ids",
    withField("a", strOrList, { default: ["x", 1] }),
    "structs.S.fields.a.default: must be a string or a list of strings",
  ],
  ["a default of bytes", withField("a", bytes, { default: "x" }), "structs.S.fields.a.default: bytes cannot have a default here"],
  [
    "a default of a struct",
    protocolOf([small("S", [plain("a", ref("T"), { default: {} })]), small("T", [])]),
    "structs.S.fields.a.default: a struct cannot have a default here",
  ],
  ["a default of a tensor", withField("a", tensor, { default: [] }), "structs.S.fields.a.default: a tensor cannot have a default here"],
  ["a default with a wrong item of a set", withField("a", set(i64), { default: [1.5] }), "structs.S.fields.a.default: must be an integer"],
  ["a set of ids that may be one", withField("a", set(strOrList)), "structs.S.fields.a: strOrList is a field's own type"],
  [
    "a request with a tensor in a struct of its own",
    protocolOf([small("Inner", [plain("t", list(tensor))])], {
      operations: [call("a", { request: small("R", [plain("i", nullable(ref("Inner")))], tagged) })],
    }),
    "operations.a.request: R can hold a tensor, and a request is one frame",
  ],
  [
    "a union with a tensor",
    protocolOf([], { unions: [union("U", { doc: "x", members: [small("S", [plain("t", map(tensor))], tagged)] })] }),
    "unions.U: S can hold a tensor, and a union is one frame",
  ],
  ["a value with a tensor", protocolOf([], { values: [value("V", list(tensor), "x")] }), "values.V: a value is one frame"],
  [
    "a value with a struct that has a tensor",
    protocolOf([small("S", [plain("t", tensor)])], { values: [value("V", ref("S"), "x")] }),
    "values.V: a value is one frame",
  ],
  ["a value of a struct that there is not", protocolOf([], { values: [value("V", ref("S"), "x")] }), "values.V: there is no struct S"],
  ["a value's name", protocolOf([], { values: [value("a-b", str, "x")] }), "values.a-b: a value's name must be a name in TypeScript"],
  [
    "a value with a name of the runtime",
    protocolOf([], { values: [value("Tensor", str, "x")] }),
    "values.Tensor: generated code uses this",
  ],
  [
    "a value named like a struct",
    protocolOf([small("S", [])], { values: [value("S", str, "x")] }),
    "values.S: its name S is taken by structs.S",
  ],
  ["an empty doc of a value", protocolOf([], { values: [value("V", str, "")] }), "values.V.doc: needs a sentence of documentation"],
  ["an empty doc of a struct", protocolOf([small("S", [], { doc: " " })]), "structs.S.doc: needs a sentence of documentation"],
  ["an empty doc of a field", withField("a", str, { doc: "" }), "structs.S.fields.a.doc: needs a sentence of documentation"],
  [
    "an empty doc of a base",
    protocolOf([small("S", [], { extends: base("B", { doc: "", fields: [] }) })]),
    "structs.S.extends.doc: needs a sentence of documentation",
  ],
  ["an empty doc of a protocol", protocolOf([], { doc: "" }), "tiny.doc: needs a sentence of documentation".replace("tiny.", "")],
  [
    "an empty summary",
    protocolOf([], { operations: [call("a", { summary: "" })] }),
    "operations.a.summary: needs a sentence of documentation",
  ],
  [
    "an empty doc of an operation",
    protocolOf([], { operations: [call("a", { doc: "" })] }),
    "operations.a.doc: needs a sentence of documentation",
  ],
  [
    "an empty doc of a constant",
    protocolOf([], { constants: [constant("A", 1, "")] }),
    "constants.A.doc: needs a sentence of documentation",
  ],
  [
    "a constant's name",
    protocolOf([], { constants: [constant("A B", 1, "x")] }),
    "constants.A B: a constant's name must be a name in TypeScript",
  ],
  [
    "a constant twice",
    protocolOf([], { constants: [constant("A", 1, "x"), constant("A", 2, "x")] }),
    "constants.A: its name A is taken by constants.A",
  ],
  ["a bad release", protocolOf([], { release: "v1" }), "release: must be a release such as 0.1.0"],
  [
    "a bad release of an operation",
    protocolOf([], { operations: [call("a", { since: "1" })] }),
    "operations.a.since: must be a release such as 0.1.0",
  ],
  ["a timeout of nothing", protocolOf([], { operations: [call("a", { timeoutMs: 0 })] }), "operations.a.timeoutMs: must be more than 0"],
  [
    "a timeout of a fraction",
    protocolOf([], { operations: [call("a", { timeoutMs: 1.5 })] }),
    "operations.a.timeoutMs: must be a whole number of milliseconds",
  ],
  ["an endless timeout", protocolOf([], { operations: [call("a", { timeoutMs: Infinity })] }), "operations.a.timeoutMs: "],
  [
    "a timeout beyond timers",
    protocolOf([], { operations: [call("a", { timeoutMs: 2 ** 31 })] }),
    "operations.a.timeoutMs: timers reach no further",
  ],
  [
    "an operation twice",
    protocolOf([], { operations: [call("a"), { ...call("b"), name: "a" }] }),
    "operations.a: two operations have this name",
  ],
  ...["then", "close", "control", "connection", "constructor", "valueOf"].map(
    (name) =>
      [
        `an operation named ${name}`,
        protocolOf([], { operations: [call(name)] }),
        `operations.${name}: a client cannot have a method of this name`,
      ] as const,
  ),
  [
    "a request claimed twice",
    protocolOf([], { operations: [call("a"), call("b", { request: small("ARequest", [], tagged) })] }),
    "operations.b.request: ARequest is the request of a already; a tag must name one operation",
  ],
  [
    "a request that is a reply",
    protocolOf([], { operations: [call("a"), call("b", { request: small("AReply", [], tagged) })] }),
    "operations.b.request: AReply is both a request and a reply",
  ],
  ["a reply without a tag", protocolOf([], { operations: [call("a", { reply: small("R", []) })] }), "operations.a.reply: R has no tag"],
  [
    "a refused field that there is not",
    protocolOf([], { operations: [call("a", { refuses: [{ field: "tags", when: "empty", because: "x" }] })] }),
    "operations.a.refuses: ARequest has no field tags",
  ],
  [
    "a refused value that there is not",
    protocolOf([], {
      operations: [call("a", { request: small("R", [plain("n", i64)], tagged), refuses: [{ field: "n", when: "empty", because: "x" }] })],
    }),
    "operations.a.refuses: the value of n cannot be empty",
  ],
  [
    "a union with a member without a tag",
    protocolOf([], { unions: [union("U", { doc: "x", members: [small("S", [])] })] }),
    "unions.U: S has no tag to tell it by",
  ],
  ["a union of nothing", protocolOf([], { unions: [union("U", { doc: "x", members: [] })] }), "unions.U: has no members"],
  [
    "a union with a member twice",
    (() => {
      const member = small("S", [], tagged);
      return protocolOf([], { unions: [union("U", { doc: "x", members: [member, member] })] });
    })(),
    "unions.U: S is a member twice",
  ],
  [
    "a tag that is not the class's name",
    protocolOf([small("S", [], { ...tagged, python: "T" })]),
    "structs.S: the name of a tagged struct is that of its class; leave out `python`",
  ],
  [
    "a struct that is described and left out",
    protocolOf([small("S", [], { python: "T" })], { leavesOut: ["T"] }),
    "leavesOut: T is described, so it is not left out",
  ],
  ["a wire name that UTF-8 cannot hold", withField("\ud800", str), "must be text that UTF-8 can hold"],
  ["a type that there is not", withField("a", { kind: "bag" } as never), "structs.S.fields.a.type.kind: "],
  ["an option that there is not", withField("a", str, { defautl: 1 } as never), "structs.S.fields.a: "],
];

test.each(cases)("%s", (_, definition, problem) => {
  expect(problemsOf(definition).map((text) => text.replace(/^tiny\./, ""))).toContainEqual(expect.stringContaining(problem));
});

test("a struct may contain itself where it may also end", () => {
  const tree = small("Tree", [
    plain("left", nullable(ref("Tree")), { default: null }),
    plain("children", list(ref("Tree"))),
    plain("named", map(ref("Tree"))),
  ]);
  expect(problemsOf(protocolOf([tree]))).toEqual([]);
});

test("no struct can take the name of a function of the runtime", async () => {
  const runtime = await import("../../src/wire/index.ts");
  const endings = Object.keys(runtime).flatMap(
    (name) => /^(?:read|write|encode|decode|headOf|propertiesOf)([A-Z].*)$/.exec(name)?.[1] ?? [],
  );
  expect(endings.length).toBeGreaterThan(20);
  for (const name of new Set(endings)) expect(problemsOf(protocolOf([small(name, [])])), name).not.toEqual([]);
});
