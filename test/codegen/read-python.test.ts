import { describe, expect, test } from "vitest";
import { spellType, spellValue } from "../../codegen/sync/contract.ts";
import { readPython } from "../../codegen/sync/read-python.ts";
import { linesBefore, readText, spell } from "./python-text.ts";
import { besides, wheelFile } from "./wheel.ts";

describe("the files of the 0.1.1 wheel", () => {
  const contract = readPython(wheelFile("io_struct.py"), besides.map(wheelFile));
  const { structs } = JSON.parse(Buffer.from(wheelFile("fields.json").bytes).toString()) as {
    structs: Record<string, { layout: string; tag: string | null; fields: { name: string; type: string; default?: string }[] }>;
  };
  // where msgspec's own list has a class, or another spelling of the same
  const spelled: Record<string, string> = {
    ProfileReqType: "Literal[1, 2]",
    BlockReqType: "Literal[1, 2]",
    Modality: "Literal[1, 2, 3]",
    "tuple[int, ...]": "list[int]",
    HandshakeAddresses: "WireHandshakeAddresses",
  };

  test("has every field as msgspec lists it, in its order, with its type and default", () => {
    expect(contract.structs).toHaveLength(64);
    for (const { name, layout, tag, fields } of contract.structs) {
      const known = structs[name];
      expect(
        {
          layout,
          tag: tag ?? null,
          fields: fields.map((field) => [
            field.name,
            spellType(field.type),
            field.default === undefined ? "required" : spellValue(field.default),
          ]),
        },
        name,
      ).toEqual({
        layout: known?.layout,
        tag: known?.tag ?? null,
        fields: known?.fields.map((field) => [
          field.name,
          (spelled[field.type] ?? field.type).replaceAll("'", '"'),
          field.default?.replaceAll("'", '"').replace(/^(-?\d+)\.0$/, "$1") ?? "required",
        ]),
      });
    }
  });

  test("has what else the file holds listed with the reason", () => {
    const count = new Map<string, number>();
    for (const { because } of contract.skipped) count.set(because, (count.get(because) ?? 0) + 1);
    expect([...count].sort()).toEqual([
      ["a base of other structs", 2],
      ["a class without a base, no struct", 7],
      ["a dataclass", 3],
      ["a function", 22],
      ["an enum, part of the fields that have it", 3],
    ]);
    expect(contract.skipped.find(({ name }) => name === "MsgpackEncoder")?.place).toMatchObject({ line: 1231, column: 1 });
  });

  test("keeps comments and docstrings as documentation, and places", () => {
    const find = (name: string) => contract.structs.find((struct) => struct.name === name);
    expect(find("UpdateWeightsFromDistributedReqInput")?.fields.at(-1)).toMatchObject({
      doc: "Required. Pass ``None`` to keep the current namespace. Flushed L3 updates must supply a shared checkpoint identity.",
      place: { file: "io_struct.py", line: 936, column: 5 },
    });
    expect(find("WireReadyMessage")?.doc).toBe("Engine -> frontend handshake status frame (``status`` = HELLO | READY).");
  });

  test("is read in under a second", () => {
    const start = performance.now();
    readPython(wheelFile("io_struct.py"));
    expect(performance.now() - start).toBeLessThan(1000);
  });
});

// Python text, and what is read from it
const forms: readonly (readonly [what: string, text: string, expected: readonly string[]])[] = [
  ["one line", "class A(BaseReq, kw_only=True):\n    x: int\n", ["array A tagged(x: int)"]],
  [
    "options over lines",
    "class A(\n    msgspec.Struct,\n    frozen=True,  # why\n    array_like=True,\n):\n    x: int\n",
    ["array A(x: int)"],
  ],
  ["a map", "class A(msgspec.Struct):\n    x: int\n", ["map A(x: int)"]],
  ["a tag of its own", 'class A(msgspec.Struct, array_like=True, tag="a"):\n    pass\n', ["array A tagged a()"]],
  ["no tag again", "class A(BaseReq, tag=False):\n    pass\n", ["array A()"]],
  [
    "a tag that is inherited",
    'class A(msgspec.Struct, tag="a"): pass\nclass B(A): pass\nclass C(B): pass\n',
    ["map B tagged a()", "map C tagged a()"],
  ],
  // as msgspec 0.23 lists __struct_fields__
  [
    "keyword-only fields behind all others",
    "class A(msgspec.Struct, kw_only=True):\n    a: int = 1\n    b: int\nclass B(A):\n    c: int\n    d: int = 3\n",
    ["map B(c: int, d: int = 3, a: int = 1, b: int)"],
  ],
  [
    "a field defined again in its place",
    "class A(BaseReq, kw_only=True):\n    a: int = 1\n    b: int\nclass B(A, kw_only=True):\n    c: int = 1\n    a: str = 'z'\n",
    ["array A tagged(a: int = 1, b: int)", 'array B tagged(a: str = "z", b: int, c: int = 1)'],
  ],
  [
    "a field that becomes keyword-only",
    "class A(msgspec.Struct, kw_only=True):\n    a: int = 1\n    b: int\nclass B(A):\n    c: int\n    d: int = 3\nclass C(B, kw_only=True):\n    c: int = 5\n",
    ["map B(c: int, d: int = 3, a: int = 1, b: int)", "map C(d: int = 3, c: int = 5, a: int = 1, b: int)"],
  ],
  [
    "required after defaulted",
    "class A(BaseReq, kw_only=True):\n    a: int = 1\n    b: str | None\n",
    ["array A tagged(a: int = 1, b: str | None)"],
  ],
  [
    "unions and optionals",
    "class A(BaseReq, kw_only=True):\n    a: Optional[int]\n    b: Union[int, str, None]\n    c: t.Optional[t.List[t.Dict[str, t.Any]]]\n",
    ["array A tagged(a: int | None, b: int | str | None, c: list[dict[str, Any]] | None)"],
  ],
  [
    "nested generics",
    "class A(BaseReq, kw_only=True):\n    a: list[list[float | None]]\n    b: dict[str, list[int]]\n    c: tuple[int, ...]\n    d: tuple[int, str]\n    e: set[int]\n    f: list\n    g: dict\n",
    [
      "array A tagged(a: list[list[float | None]], b: dict[str, list[int]], c: list[int], d: tuple[int, str], e: set[int], f: list, g: dict)",
    ],
  ],
  [
    "literals and aliases",
    'Mode = Literal["a", "b"]\nMore = Literal[Mode, "c", None]\nclass A(BaseReq, kw_only=True):\n    a: Mode = "a"\n    b: More = None\n    c: Literal[-1, 0x10]\n',
    ['array A tagged(a: Literal["a", "b"] = "a", b: Literal["a", "b", "c"] | None = None, c: Literal[-1, 16])'],
  ],
  [
    "an alias of a type",
    "Reason = dict\nclass A(BaseReq, kw_only=True):\n    a: list[Reason | None]\n",
    ["array A tagged(a: list[dict | None])"],
  ],
  [
    "a type statement",
    "type Reason = dict[str, int]\nclass A(BaseReq, kw_only=True):\n    a: Reason\n",
    ["array A tagged(a: dict[str, int])"],
  ],
  [
    "enums by value",
    "class K(Enum):\n    ON = 1\n    OFF = 2\nclass L(IntEnum):\n    A = auto()\n    B = auto()\nclass M(str, Enum):\n    X = 'x'\nclass A(BaseReq, kw_only=True):\n    k: K = K.ON\n    l: L\n    m: M = M.X.value\n",
    ['array A tagged(k: Literal[1, 2] = 1, l: Literal[1, 2], m: Literal["x"] = "x")'],
  ],
  [
    "quoted references",
    "class A(BaseReq, kw_only=True):\n    a: \"B | None\" = None\n    b: list['A']\nclass B(msgspec.Struct, array_like=True):\n    x: int\n",
    ["array A tagged(a: B | None = None, b: list[A])", "array B(x: int)"],
  ],
  [
    "imported types",
    "from elsewhere import Thing\nimport torch\nclass A(BaseReq, kw_only=True):\n    a: Thing | None = None\n    b: torch.Tensor\n",
    ["array A tagged(a: Thing | None = None, b: Tensor)"],
  ],
  [
    "literals as defaults",
    "class A(BaseReq, kw_only=True):\n    a: int = -0x1F\n    b: float = 1e-3\n    c: str = 'it' \"'s\\n\\u00e9\"\n    d: bool = True\n    e: int = 1_000\n    f: bytes = b'\\xff'\n    g: str = r'\\d'\n",
    [
      'array A tagged(a: int = -31, b: float = 0.001, c: str = "it\'s\\né", d: bool = True, e: int = 1000, f: bytes = bytes.fromhex("ff"), g: str = "\\\\d")',
    ],
  ],
  [
    "empty containers",
    "class A(BaseReq, kw_only=True):\n    a: list[int] = []\n    b: dict[int, str] = {}\n    c: set[int] = set()\n    d: tuple[int, ...] = ()\n",
    ["array A tagged(a: list[int] = [], b: dict[int, str] = {}, c: set[int] = [], d: list[int] = [])"],
  ],
  [
    "constants and arithmetic",
    "MIB = 1 << 20\nSIZE: int = (2 * MIB - 7 // -2) % 10 ** 9\nHALF = 1 / 2\nclass A(BaseReq, kw_only=True):\n    a: int = SIZE + 1\n    b: float = HALF\n    c: int = 512 * 1024 * 1024\n",
    ["array A tagged(a: int = 2097157, b: float = 0.5, c: int = 536870912)"],
  ],
  [
    "an integer beyond the safe range",
    "class A(BaseReq, kw_only=True):\n    a: int = 2**64 - 1\n",
    ["array A tagged(a: int = 18446744073709551615)"],
  ],
  [
    "what is no field",
    "class A(BaseReq, kw_only=True):\n    '''Text.'''\n    LIMIT = 3\n    shared: ClassVar[int] = 3\n    x: int\n    def f(self): return 1\n    @classmethod\n    def g(cls): pass\n",
    ["array A tagged(x: int)"],
  ],
  ["two fields on a line", "class A(BaseReq, kw_only=True): x: int; y: int = 2\n", ["array A tagged(x: int, y: int = 2)"]],
  ["a field named type", "class A(BaseReq, kw_only=True):\n    type: int\n", ["array A tagged(type: int)"]],
  [
    "code between classes",
    "if True:\n    import os\ntry:\n    import numpy as np\nexcept ImportError:\n    np = None\nX: frozenset[str] = frozenset({'a'})\nUSE = os.environ.get('X')\ndef f(*, a: int = 3) -> None:\n    class Inner(Foo): pass\nclass Failure(Exception): pass\nclass A(BaseReq): pass\n",
    ["array A tagged()"],
  ],
  ["other line ends", "class A(BaseReq, kw_only=True):\r\n    # why\r\n    x: int\r    y: int\n", ["array A tagged(x: int, y: int)"]],
  ["tabs alone", "class A(BaseReq, kw_only=True):\n\tx: int\n\ty: int\n", ["array A tagged(x: int, y: int)"]],
];

describe("it reads", () => {
  test.each(forms)("%s", (_, text, expected) => {
    expect(spell(readText(text))).toEqual(expected);
  });

  test("a field's own key on the wire, where keys are on the wire", () => {
    const text =
      "class A(msgspec.Struct):\n    d: int = msgspec.field(name='dee')\n    a: int = msgspec.field(default=3)\n    b: list[int] = msgspec.field(default_factory=list)\n    c: str = msgspec.field(default='', name='see')\n";
    expect(spell(readText(text))).toEqual(['map A(dee: int, a: int = 3, b: list[int] = [], see: str = "")']);
    expect(readText(text).structs.at(-1)?.fields[3]?.python).toBe("c");
    expect(spell(readText(text.replace("Struct)", "Struct, array_like=True)")))).toEqual([
      'array A(d: int, a: int = 3, b: list[int] = [], c: str = "")',
    ]);
  });

  test("types, bases and constants of other files", () => {
    const text =
      "from pkg.params import Params, Base, LIMIT as MOST, Kind\nclass A(Base, kw_only=True):\n    p: Params\n    n: int = MOST\n    k: Kind = Kind.ON\n";
    const also =
      "import msgspec\nfrom enum import Enum\nLIMIT = 7\nclass Kind(Enum):\n    ON = 1\nclass Params(msgspec.Struct, array_like=True):\n    x: int\nclass Base(msgspec.Struct, array_like=True, tag=True):\n    b: int\n";
    expect(spell(readText(text, "io_struct.py", { "src/params.py": also }))).toEqual([
      "array A tagged(b: int, p: Params, n: int = 7, k: Literal[1] = 1)",
      "array Params(x: int)",
    ]);
    expect(() => readText(text)).toThrow(
      `io_struct.py:${linesBefore + 2}:9: a base imported from pkg.params, which may be a struct; give its file with --also: Base`,
    );
  });

  test("a byte-order mark at the start", () => {
    const bytes = new TextEncoder().encode("\ufeffimport msgspec\nclass A(msgspec.Struct):\n    x: int\n");
    expect(spell(readPython({ file: "a.py", bytes }))).toEqual(["map A(x: int)"]);
  });

  test("a file of 50,000 lines", () => {
    const text = Array.from({ length: 12_500 }, (_, i) => `class A${i}(BaseReq, kw_only=True):\n    # why\n    x: int\n`).join("\n");
    expect(readText(text).structs).toHaveLength(12_500);
  });
});

// Python text, and the message without the file; lines count from the text's own first
const faults: readonly (readonly [what: string, text: string, message: string])[] = [
  ["a syntax error", "class A(BaseReq)\n    x: int\n", "1:16: this is not Python: class A(BaseReq)"],
  ["a truncated file", "class A(BaseReq, kw_only", "1:24: this is not Python: class A(BaseReq, kw_only"],
  ["a class cut off", "class A(BaseReq):\n", "1:17: this is not Python: class A(BaseReq):"],
  ["a string cut off", "class A(BaseReq, kw_only=True):\n    x: str = 'abc\n    y: int\n", "2:14: a string without an end: x: str = 'abc"],
  ["a docstring cut off", 'class A(BaseReq):\n    """Text\n    x: int\n', "2:"],
  [
    "tabs among spaces",
    "class A(BaseReq, kw_only=True):\n        x: int\n\ty: int\n",
    "3:2: the indentation of this line is not Python: tabs and spaces are mixed: y: int",
  ],
  [
    "a line between two indentations",
    "class A(BaseReq, kw_only=True):\n    x: int\n  y: int\n",
    "3:3: the indentation of this line is not Python: it is not that of the lines before: y: int",
  ],
  ["an unknown base", "class A(Base):\n    x: int\n", "1:9: there is no such class in this file: Base"],
  [
    "a struct of two bases",
    "class B(msgspec.Struct): pass\nclass A(BaseReq, B): pass\n",
    "2:8: a struct of several bases, whose order of fields is not known: (BaseReq, B)",
  ],
  ["a class that inherits from itself", "class A(A): pass\n", "1:1: a class that inherits from itself: class A(A): pass"],
  ["duplicate classes", "class A(BaseReq): pass\nclass A(BaseReq): pass\n", "2:7: this name is defined twice: A"],
  ["duplicate fields", "class A(BaseReq, kw_only=True):\n    x: int\n    x: str\n", "3:5: this field is defined twice: x: str"],
  ["a default of another type", "class A(BaseReq, kw_only=True):\n    x: int = 'a'\n", "2:14: this default does not fit the type int: 'a'"],
  [
    "None for what takes no None",
    "class A(BaseReq, kw_only=True):\n    x: list[int] = None\n",
    "2:20: this default does not fit the type list[int]: None",
  ],
  ["a float for an integer", "class A(BaseReq, kw_only=True):\n    x: int = 1.0\n", "2:14: this default does not fit the type int: 1.0"],
  [
    "a value that the literal has not",
    "class A(BaseReq, kw_only=True):\n    x: Literal['a'] = 'b'\n",
    `2:23: this default does not fit the type Literal["a"]: 'b'`,
  ],
  [
    "a required field behind a default",
    "class A(msgspec.Struct):\n    x: int = 1\n    y: int\n",
    "1:1: the required field y follows fields with defaults; msgspec wants kw_only=True there: class A(msgspec.Struct):",
  ],
  ["an unknown type", "class A(BaseReq, kw_only=True):\n    x: Foo\n", "2:8: there is no such type in this file: Foo"],
  [
    "a type of typing that was not imported",
    "class A(BaseReq, kw_only=True):\n    x: Dict[str, int]\n",
    "2:8: a generic type that is not known: Dict[str, int]",
  ],
  ["a quoted type that is none", "class A(BaseReq, kw_only=True):\n    x: 'a b'\n", "2:8: a type in quotes that is not understood: 'a b'"],
  [
    "a dataclass as a type",
    "@dataclass\nclass D:\n    x: int\nclass A(BaseReq, kw_only=True):\n    d: D\n",
    "5:8: this type is a dataclass, which has no form on this wire: D",
  ],
  ["an unknown option", "class A(BaseReq, color=3): pass\n", "1:24: this value of color is not known: 3"],
  ["an unknown flag", "class A(BaseReq, odd=True): pass\n", "1:18: an option of a struct that is not known: odd"],
  ["renamed fields", "class A(msgspec.Struct, rename='camel'): pass\n", "1:32: this value of rename is not known: 'camel'"],
  [
    "unpacked options",
    "OPTIONS = {}\nclass A(msgspec.Struct, **OPTIONS): pass\n",
    "2:8: unpacked arguments cannot be worked out: (msgspec.Struct, **OPTIONS)",
  ],
  ["a decorated struct", "@final\nclass A(BaseReq): pass\n", "1:1: a decorator that may change the struct: @final"],
  [
    "a struct under a condition",
    "if X:\n    class A(BaseReq): pass\n",
    "2:5: a struct that is defined under a condition: class A(BaseReq): pass",
  ],
  [
    "fields under a condition",
    "class A(BaseReq, kw_only=True):\n    if X:\n        x: int\n",
    "2:5: a statement that a struct cannot have: if X:",
  ],
  [
    "a call as a default",
    "class A(BaseReq, kw_only=True):\n    x: int = compute()\n",
    "2:14: a default that cannot be worked out without running it: compute()",
  ],
  [
    "a name as a default that is none",
    "class A(BaseReq, kw_only=True):\n    x: int = LIMIT\n",
    "2:14: a default that is no constant of this file: LIMIT",
  ],
  [
    "a constant that is set twice",
    "N = 1\nN = 2\nclass A(BaseReq, kw_only=True):\n    x: int = N\n",
    "4:14: a default that is no constant of this file: N",
  ],
  ["an alias that is set twice", "T = int\nT = str\nclass A(BaseReq, kw_only=True):\n    x: T\n", "2:5: T is set more than once: str"],
  ["an alias of itself", "T = list[T]\nclass A(BaseReq, kw_only=True):\n    x: T\n", "1:5: T stands for itself: list[T]"],
  [
    "a factory of its own",
    "class A(msgspec.Struct):\n    x: list = msgspec.field(default_factory=lambda: [1])\n",
    "2:45: a factory other than list, dict, set and the like cannot be worked out: lambda: [1]",
  ],
  ["division by nothing", "class A(BaseReq, kw_only=True):\n    x: int = 1 // 0\n", "2:14: an operation that is not known here: 1 // 0"],
  ["a NUL character", "class A(BaseReq): pass\0\n", "1:23: Python source must not hold a NUL character: class A(BaseReq): pass\0"],
];

describe("it refuses", () => {
  test.each(faults)("%s", (_, text, message) => {
    const place = /^(\d+):(.*)$/s.exec(message);
    const expected = `io_struct.py:${linesBefore + Number(place?.[1])}:${place?.[2]}`;
    let thrown: unknown;
    try {
      readText(text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: "PythonError" });
    const found = (thrown as Error).message;
    // a message that ends with its place is checked so far
    expect(expected.endsWith(":") ? found.slice(0, expected.length) : found).toBe(expected);
  });

  test("bytes that are not UTF-8", () => {
    const bytes = Uint8Array.from([...new TextEncoder().encode("# é\nx = '€"), 0xff, 0x27]);
    expect(() => readPython({ file: "a.py", bytes })).toThrow(/^a\.py:2:7: not UTF-8 from here on$/);
  });

  test("a class that two files define", () => {
    const also = { "other.py": "import msgspec\nclass A(msgspec.Struct): pass\n" };
    expect(() => readText("class A(BaseReq): pass\n", "io_struct.py", also)).toThrow(
      "other.py:2:7: this name is defined in io_struct.py too: A",
    );
  });
});
