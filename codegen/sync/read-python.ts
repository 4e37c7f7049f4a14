import { type Contract, type ContractStruct, type ContractType, type Place, structsIn } from "./contract.ts";
import { readStruct, type StructClass } from "./python-class.ts";
import { argumentsOf } from "./python-default.ts";
import { type Definition, openModule, type PythonModule } from "./python-module.ts";
import { childrenOf, type SyntaxNode, statementsOf } from "./python-syntax.ts";
import { type Names, readType } from "./python-type.ts";
import { type PythonValue, readValue } from "./python-value.ts";
import { openSource, PythonError } from "./source.ts";

/** A file with its bytes. */
export interface PythonFile {
  readonly file: string;
  readonly bytes: Uint8Array;
}

/** Something that is no message, and why. */
export interface Skipped {
  readonly name: string;
  readonly because: string;
  readonly place: Place;
}

/** What a Python file says, and what of it is no message. */
export interface PythonContract extends Contract {
  /** Structs that others begin with, and that are no messages. */
  readonly bases: readonly ContractStruct[];
  readonly skipped: readonly Skipped[];
}

/** Reads the structs of a Python file without running it. Types that it imports are looked for in the other files. */
export function readPython(main: PythonFile, also: readonly PythonFile[] = []): PythonContract {
  const modules = [main, ...also].map(({ file, bytes }) => openModule(openSource(file, bytes)));
  return new Reader(modules).read(main.file);
}

type ClassKind = { readonly struct: StructClass } | { readonly enum: ReadonlyMap<string, PythonValue> } | { readonly skipped: string };

const trusted = /^(typing|typing_extensions|collections(\.abc)?|enum|abc|types|builtins|contextlib|threading)$/;
const enums = new Set(["Enum", "IntEnum", "StrEnum", "IntFlag"]);
/** Types that the engine's encoder has a hook for, with what they are on the wire. */
const hooked: { readonly [name: string]: ContractType } = {
  "torch.Tensor": { kind: "tensor" },
  "numpy.ndarray": { kind: "tensor" },
  "torch.dtype": { kind: "str" },
};
const ownTypes = new Set("bool int float str bytes bytearray memoryview list set frozenset tuple dict object None".split(" "));

class Reader {
  private readonly kinds = new Map<Definition, ClassKind>();
  private readonly pending = new Set<Definition>();
  private readonly modules: readonly PythonModule[];

  constructor(modules: readonly PythonModule[]) {
    this.modules = modules;
  }

  read(name: string): PythonContract {
    const structs: ContractStruct[] = [];
    const skipped: Skipped[] = [];
    for (const module of this.modules) {
      const { source } = module;
      for (const node of module.functions) {
        skipped.push({ name: source.of(node.getChild("VariableName") ?? node), because: "a function", place: source.placeOf(node.from) });
      }
      for (const definition of module.definitions.values()) {
        if (definition.kind !== "class") continue;
        const kind = this.kindOf(module, definition);
        if ("struct" in kind) structs.push(kind.struct.struct);
        else {
          const because = "skipped" in kind ? kind.skipped : "an enum, part of the fields that have it";
          skipped.push({ name: definition.name, because, place: source.placeOf(definition.node.from) });
        }
      }
    }
    const once = new Map<string, ContractStruct>();
    for (const struct of structs) {
      const other = once.get(struct.name);
      if (other !== undefined && struct.place !== undefined) {
        throw new PythonError(struct.place, `this name is defined in ${other.file} too`, struct.name);
      }
      once.set(struct.name, struct);
    }
    const messages = structs.filter((struct) => !isOnlyBase(struct, structs));
    for (const { name: base, place } of structs) {
      if (place !== undefined && !messages.some((message) => message.name === base)) {
        skipped.push({ name: base, because: "a base of other structs", place });
      }
    }
    return {
      name,
      kind: "python",
      structs: messages,
      leftOut: [],
      bases: structs.filter((struct) => !messages.includes(struct)),
      skipped: inFileOrder(skipped),
    };
  }

  private kindOf(module: PythonModule, definition: Definition): ClassKind {
    const known = this.kinds.get(definition);
    if (known !== undefined) return known;
    const { source } = module;
    if (this.pending.has(definition)) throw source.error(definition.node, "a class that inherits from itself");
    this.pending.add(definition);
    const kind = this.classify(module, definition);
    this.pending.delete(definition);
    this.kinds.set(definition, kind);
    return kind;
  }

  private classify(module: PythonModule, definition: Definition): ClassKind {
    const { source } = module;
    const { node, decorators } = definition;
    const names = this.namesOf(module);
    const decoratorNames = decorators.map((decorator) =>
      source
        .of(decorator)
        .replace(/^@\s*/, "")
        .replace(/\([\s\S]*/, "")
        .trim(),
    );
    if (decoratorNames.some((name) => names.plainOf(name) === "dataclasses.dataclass")) return { skipped: "a dataclass" };
    const list = node.getChild("ArgList");
    const bases = list === null ? [] : argumentsOf(source, list).filter(({ keyword }) => keyword === undefined);
    if (bases.length === 0) return { skipped: "a class without a base, no struct" };
    const found = bases.map(({ value }) => this.baseOf(module, value));
    if (found.includes("enum")) return { enum: this.readEnum(module, node) };
    const structs = found.filter((base) => base === "struct" || typeof base === "object");
    const [base] = structs;
    if (base === undefined) return { skipped: "a class that is no struct" };
    if (structs.length > 1 || found.length > 1)
      throw source.error(list ?? node, "a struct of several bases, whose order of fields is not known");
    if (definition.repeated) throw source.error(node, "a struct that is defined under a condition");
    if (decorators[0] !== undefined) throw source.error(decorators[0], "a decorator that may change the struct");
    return { struct: readStruct(source, definition, typeof base === "object" ? base : undefined, names) };
  }

  private baseOf(module: PythonModule, node: SyntaxNode): StructClass | "struct" | "enum" | "other" {
    const { source } = module;
    // `Generic[T]` and the like.
    const name = source
      .of(node)
      .replace(/\[[\s\S]*/, "")
      .replaceAll(/\s/g, "");
    const target = this.find(module, name);
    if (target !== undefined) {
      if (target.definition.kind === "value") return this.baseOf(target.module, target.definition.node);
      const kind = this.kindOf(target.module, target.definition);
      return "struct" in kind ? kind.struct : "enum" in kind ? "enum" : "other";
    }
    const plain = this.plainOf(module, name);
    if (plain === "Struct") return "struct";
    if (enums.has(plain)) return "enum";
    if (plain !== "") return "other";
    const imported = module.imports.get(name.split(".")[0] ?? name);
    if (imported !== undefined)
      throw source.error(node, `a base imported from ${imported.module}, which may be a struct; give its file with --also`);
    if (/^(Base)?Exception|Error$|Warning$/.test(name)) return "other";
    throw source.error(node, "there is no such class in this file");
  }

  private readEnum({ source }: PythonModule, node: SyntaxNode): ReadonlyMap<string, PythonValue> {
    const members = new Map<string, PythonValue>();
    let last = 0n;
    for (const statement of statementsOf(node.getChild("Body") ?? node)) {
      const [target, value, ...others] = childrenOf(statement);
      if (statement.name !== "AssignStatement" || target?.name !== "VariableName" || value === undefined || value.name === "TypeDef")
        continue;
      const name = source.of(target);
      if (members.has(name)) throw source.error(target, "this name is defined twice");
      if (others.length > 0) throw source.error(statement, "an enum's member of a form that is not known");
      const found = /^(enum\.)?auto\(\)$/.test(source.of(value)) ? last + 1n : readValue(source, value, (other) => members.get(other));
      if (typeof found === "bigint") last = found;
      else if (typeof found !== "string") throw source.error(value, "an enum's value that is neither text nor an integer");
      members.set(name, found);
    }
    return members;
  }

  /** What a name of a file is defined by, in this file or in another one that was given. */
  private find(module: PythonModule, name: string): { readonly module: PythonModule; readonly definition: Definition } | undefined {
    const definition = module.definitions.get(name);
    if (definition !== undefined) return { module, definition };
    const [head = name, ...rest] = name.split(".");
    const imported = module.imports.get(head);
    if (imported === undefined) return undefined;
    const wanted = imported.name === undefined ? rest.join(".") : imported.name;
    const other = this.modules.find(({ source }) => isFileOf(source.file, imported.module));
    const found = other?.definitions.get(wanted);
    return other === undefined || found === undefined ? undefined : { module: other, definition: found };
  }

  private plainOf({ imports, definitions }: PythonModule, name: string): string {
    const [head = name, ...rest] = name.split(".");
    const imported = imports.get(head);
    if (imported === undefined) return ownTypes.has(name) && !definitions.has(name) ? name : "";
    const inside = [...(imported.name === undefined ? [] : [imported.name]), ...rest].join(".");
    if (imported.module === "dataclasses") return `dataclasses.${inside}`;
    if (imported.module === "msgspec") return inside === "Struct" || inside === "field" ? inside : "";
    if (imported.module === "collections" && inside.startsWith("abc.")) return inside.slice(4);
    return trusted.test(imported.module) ? inside : "";
  }

  private namesOf(module: PythonModule): Names {
    return {
      plainOf: (name) => this.plainOf(module, name),
      typeOf: (name, node) => this.typeOf(module, name, node),
      valueOf: (name) => this.valueOf(module, name),
    };
  }

  private typeOf(module: PythonModule, name: string, node: SyntaxNode): ContractType | undefined {
    const target = this.find(module, name);
    if (target === undefined) {
      if (this.plainOf(module, name) !== "") return undefined;
      const [head = name, ...rest] = name.split(".");
      const imported = module.imports.get(head);
      if (imported === undefined) return undefined;
      const inside = [imported.module, ...(imported.name === undefined ? [] : [imported.name]), ...rest].join(".");
      return hooked[inside] ?? { kind: "imported", name: name.split(".").at(-1) ?? name };
    }
    const { definition } = target;
    const { source } = module;
    if (definition.kind === "value") return this.aliasOf(target.module, definition);
    // A struct may hold others of its own kind, so it must not be read for its name alone.
    const unread =
      this.pending.has(definition) || this.kinds.has(definition) ? this.kinds.get(definition) : this.kindOf(target.module, definition);
    if (unread === undefined || "struct" in unread) return { kind: "struct", name: definition.name };
    if ("enum" in unread)
      return {
        kind: "literal",
        values: [...unread.enum.values()].map((value) => (typeof value === "bigint" ? Number(value) : String(value))),
      };
    throw source.error(node, `this type is ${unread.skipped}, which has no form on this wire`);
  }

  private aliasOf(module: PythonModule, definition: Definition): ContractType {
    const { source } = module;
    if (definition.repeated) throw source.error(definition.node, `${definition.name} is set more than once`);
    if (this.pending.has(definition)) throw source.error(definition.node, `${definition.name} stands for itself`);
    this.pending.add(definition);
    const type = readType(source, definition.node, this.namesOf(module));
    this.pending.delete(definition);
    return type;
  }

  private valueOf(module: PythonModule, name: string): PythonValue | undefined {
    const [head = name, member, ...rest] = name.split(".");
    const target = this.find(module, name) ?? this.find(module, head);
    if (target === undefined) return undefined;
    const { definition } = target;
    if (definition.kind === "class") {
      const kind = this.kindOf(target.module, definition);
      const known = "enum" in kind && member !== undefined && (rest.length === 0 || rest.join(".") === "value");
      return known ? kind.enum.get(member) : undefined;
    }
    if (definition.repeated || (member !== undefined && head === definition.name)) return undefined;
    if (this.pending.has(definition)) throw target.module.source.error(definition.node, `${definition.name} stands for itself`);
    this.pending.add(definition);
    const value = readValue(target.module.source, definition.node, (other) => this.valueOf(target.module, other));
    this.pending.delete(definition);
    return value;
  }
}

function isFileOf(file: string, module: string): boolean {
  return file.split(/[\\/]/).at(-1) === `${module.split(".").at(-1)}.py`;
}

/** Whether a struct is no message: it stands at the root, others inherit from it, and no field has it. */
function isOnlyBase({ name, base }: ContractStruct, structs: readonly ContractStruct[]): boolean {
  if (base !== undefined || !structs.some((struct) => struct.base === name)) return false;
  return !structs.some(({ fields }) => fields.some(({ type }) => structsIn(type).includes(name)));
}

function inFileOrder(skipped: readonly Skipped[]): Skipped[] {
  return [...skipped].sort((a, b) => (a.place.file === b.place.file ? a.place.line - b.place.line : 0));
}
