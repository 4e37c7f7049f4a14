// A schema that nobody should write, of legal but hostile names, every type, and every kind of default.
import {
  any,
  bool,
  bytes,
  dict,
  f64,
  i32,
  i64,
  list,
  literal,
  map,
  nullable,
  ref,
  set,
  str,
  strOrList,
  tensor,
  tuple,
  u16,
  u32,
  u64,
  union,
  value,
} from "../../schema/dsl.ts";
import { call, plain, protocolOf, small } from "./small-schema.ts";

export const reserved =
  `type default class delete function arguments await break case catch const continue debugger do else enum eval export
  extends false finally for if implements import in instanceof interface let new null package private protected public return static super
  switch this throw true try typeof undefined var void while with yield async of get set name length prototype reader writer init field error
  count tag property empty i NaN Infinity Map Uint8Array`.split(/\s+/);

export const rude = "quote \" and ' and ` and $\u007bx} and \\ and */ and \n and \u2028 and <!-- and \u{1f600}";

const everyType = small(
  "EveryType",
  [
    plain("a", bool),
    plain("b", i32),
    plain("c", u16),
    plain("d", u32),
    plain("e", i64),
    plain("f", u64),
    plain("g", f64),
    plain("h", str),
    plain("i", bytes),
    plain("j", any),
    plain("k", dict),
    plain("l", list(nullable(f64))),
    plain("m", tuple(str, nullable(i64), list(bool))),
    plain("n", map(list(u64))),
    plain("o", literal("x", 1, "")),
    plain("p", nullable(strOrList)),
    plain("q", list(tuple(i64, i64))),
    plain("r", map(nullable(ref("Empty")))),
    plain("s", list(list(bytes))),
    plain("t", map(literal(-1, 300))),
    plain("u", set(i32)),
    plain("v", nullable(set(bytes))),
    plain("w", list(nullable(list(f64)))),
  ],
  { layout: "array" },
);

const defaults = small("Defaults", [
  plain("a", f64, { default: 1 }),
  plain("b", f64, { default: -0 }),
  plain("c", u64, { default: 2n ** 64n - 1n }),
  plain("d", i64, { default: -9007199254740991 }),
  plain("e", list(tuple(str, f64)), { default: [["é\ud83d\ude00", 2]] }),
  plain("f", map(f64), { default: { "a b": 3, é: 0.5 } }),
  plain("g", any, { default: { nested: [1, null, true, "x".repeat(300)] } }),
  plain("h", literal("x", 70000), { default: 70000 }),
  plain("i", list(u64), { default: [0, 256] }),
]);

/** Tensors wherever a type can hold one, and a struct that holds them only through others. */
const framed = [
  small(
    "Framed",
    [
      plain("first", str),
      plain("second", str),
      plain("a", tensor),
      plain("b", list(nullable(tensor))),
      plain("c", map(tensor)),
      plain("d", tuple(tensor, i64)),
      plain("e", nullable(ref("Framed")), { default: null }),
    ],
    { layout: "array" },
  ),
  small("Holder", [plain("held", list(ref("Framed")))]),
];

/** Two texts, then a value of every format, so that the end of a block can be put before each of them. */
const edges = small(
  "Edges",
  [
    plain("first", str),
    plain("second", str),
    plain("a", nullable(bool)),
    plain("b", bool),
    plain("c", i64),
    plain("d", i64),
    plain("e", u64),
    plain("f", u64),
    plain("g", f64),
    plain("h", i32),
    plain("i", u16),
    plain("j", u32),
    plain("k", str),
    plain("l", bytes),
    plain("m", list(i64)),
    plain("n", list(list(i64))),
    plain("o", list(str)),
    plain("p", map(f64)),
    plain("q", literal("a literal", 7)),
    plain("r", any),
    plain("s", str, { default: "a default" }),
    plain("t", ref("A")),
    plain("u", ref("Empty")),
    plain("v", strOrList),
    plain("x", list(list(f64))),
    plain("w", list(i32)),
    plain("y", list(list(i32))),
  ],
  { layout: "array" },
);

export const protocol = protocolOf(
  [
    edges,
    small(
      "ReservedWords",
      reserved.map((word) => plain(word, str, { default: word, property: word })),
      { layout: "array", tagged: true },
    ),
    small("Prototype", [
      plain("constructor", str, { property: "constructor_" }),
      plain("__proto__", str),
      plain("toString", str, { property: "text" }),
      plain("hasOwnProperty", nullable(str), { default: null, property: "own" }),
    ]),
    small("Collisions", [
      plain("foo_bar", str),
      plain("fooBar", str, { property: "fooBar2" }),
      plain("FooBar", str, { property: "fooBar3" }),
    ]),
    small("Empty", []),
    small("EmptyArray", [], { layout: "array" }),
    small(
      "Wide",
      Array.from({ length: 300 }, (_, i) => plain(`field_${i}`, i64, { default: i })),
      { layout: "array", tagged: true },
    ),
    small(
      "WideMap",
      Array.from({ length: 70 }, (_, i) => plain(`field_${i}`, i64, { default: i })),
    ),
    small("Tree", [
      plain("value", i64),
      plain("left", nullable(ref("Tree")), { default: null }),
      plain("children", list(ref("Tree")), { default: [] }),
      plain("named", map(ref("Tree")), { default: {} }),
    ]),
    small("Rude", [plain(rude, str, { doc: rude }), plain("naïve-key.with space", str), plain("日本", str)], { doc: rude }),
    small("Alike", [
      plain("a", literal("a b")),
      plain("b", literal("ab")),
      plain("c", tuple(tuple(str, i64), str)),
      plain("d", tuple(tuple(str), i64, str)),
    ]),
    small("A", [], { layout: "array", tagged: true }),
    small("NullableStr", [plain("a", map(nullable(str)))]),
    everyType,
    defaults,
    ...framed,
  ],
  {
    values: [
      value("StrListList", list(list(str)), rude),
      value("Maybe", nullable(map(i64)), "A map or nothing."),
      value("Trees", list(ref("Tree")), "Several trees."),
    ],
    operations: [call("default", { summary: rude, doc: rude }), call("class"), call("delete")],
    unions: [union("Anything", { doc: rude, members: "requests" })],
  },
);
