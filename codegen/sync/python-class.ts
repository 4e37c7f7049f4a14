import type { ContractField, ContractStruct } from "./contract.ts";
import { argumentsOf, readFieldValue } from "./python-default.ts";
import type { Definition } from "./python-module.ts";
import { readString } from "./python-string.ts";
import { allChildrenOf, childrenOf, type SyntaxNode, statementsOf } from "./python-syntax.ts";
import { type Names, readType } from "./python-type.ts";
import { readValue } from "./python-value.ts";
import type { Source } from "./source.ts";

/** A field, and whether it is keyword-only: msgspec puts those behind all others. */
export interface ClassField extends ContractField {
  readonly keywordOnly: boolean;
}

/** What subclasses inherit besides fields. */
export interface StructClass {
  readonly struct: ContractStruct;
  readonly fields: readonly ClassField[];
  readonly arrayLike: boolean;
  /** True for a class's own name. */
  readonly tag: boolean | string;
}

/** Options of a struct that leave its bytes as they are. */
const harmless = new Set(
  `tag_field frozen eq order gc weakref dict cache_hash repr_omit_defaults forbid_unknown_fields omit_defaults`.split(" "),
);

/** Reads a struct's class, given what it inherits from; the root of all structs has no base. */
export function readStruct(source: Source, definition: Definition, base: StructClass | undefined, names: Names): StructClass {
  const { name, node } = definition;
  let arrayLike = base?.arrayLike ?? false;
  let tag = base?.tag ?? false;
  let keywordOnly = false;
  for (const { keyword, value, node: at } of argumentsOf(source, node.getChild("ArgList") ?? node)) {
    if (keyword === undefined || harmless.has(keyword)) continue;
    const setting = readValue(source, value, names.valueOf);
    if (keyword === "tag" && typeof setting === "string") tag = setting;
    else if (keyword === "tag" && setting === null) tag = false;
    else if (keyword === "rename" && setting === null) continue;
    else if (typeof setting !== "boolean") throw source.error(value, `this value of ${keyword} is not known`);
    else if (keyword === "tag") tag = setting;
    else if (keyword === "array_like") arrayLike = setting;
    else if (keyword === "kw_only") keywordOnly = setting;
    else throw source.error(at, "an option of a struct that is not known");
  }
  const body = readBody(source, definition, keywordOnly, arrayLike, names);
  const fields = inOrder(source, base?.fields ?? [], body.fields, node);
  const struct: ContractStruct = {
    name,
    file: source.file.split(/[\\/]/).at(-1) ?? source.file,
    layout: arrayLike ? "array" : "map",
    ...(tag === false ? {} : { tag: tag === true ? name : tag }),
    ...(base === undefined ? {} : { base: base.struct.name }),
    fields: fields.map(({ keywordOnly: _, from, ...field }) => (from === name || from === undefined ? field : { ...field, from })),
    ...(body.doc === undefined ? {} : { doc: body.doc }),
    place: source.placeOf((node.getChild("VariableName") ?? node).from),
  };
  return { struct, fields, arrayLike, tag };
}

/** Fields of a class behind those of its base; keyword-only ones behind all others, as msgspec has them on the wire. */
function inOrder(source: Source, inherited: readonly ClassField[], own: readonly ClassField[], node: SyntaxNode): ClassField[] {
  // A field that is defined again keeps its place.
  const all = [...new Map([...inherited, ...own].map((field) => [field.python ?? field.name, field])).values()];
  const positional = all.filter((field) => !field.keywordOnly);
  const late = positional.findIndex(({ default: value }, i) => value === undefined && positional[i - 1]?.default !== undefined);
  if (late >= 0) {
    throw source.error(node, `the required field ${positional[late]?.name} follows fields with defaults; msgspec wants kw_only=True there`);
  }
  return [...positional, ...all.filter((field) => field.keywordOnly)];
}

interface Body {
  readonly doc: string | undefined;
  readonly fields: readonly ClassField[];
}

function readBody(source: Source, { name, node }: Definition, keywordOnly: boolean, arrayLike: boolean, names: Names): Body {
  const body = node.getChild("Body");
  const fields: ClassField[] = [];
  let doc: string | undefined;
  const statements = body === null ? [] : statementsOf(body);
  for (const [i, statement] of statements.entries()) {
    switch (statement.name) {
      case "AssignStatement": {
        const field = readField(source, statement, { from: name, keywordOnly, arrayLike, names });
        if (field === undefined) break;
        if (fields.some((other) => other.name === field.name)) throw source.error(statement, "this field is defined twice");
        fields.push(field);
        break;
      }
      case "ExpressionStatement": {
        const [expression] = childrenOf(statement);
        if (expression?.name !== "String" && expression?.name !== "Ellipsis")
          throw source.error(statement, "a statement that a struct cannot have");
        if (i === 0 && expression.name === "String") doc = unfold(String(readString(source, expression)));
        break;
      }
      case "PassStatement":
      case "FunctionDefinition":
      case "DecoratedStatement":
      case "ClassDefinition":
        break;
      default:
        throw source.error(statement, "a statement that a struct cannot have");
    }
  }
  return { doc, fields };
}

interface FieldOf {
  readonly from: string;
  readonly keywordOnly: boolean;
  readonly arrayLike: boolean;
  readonly names: Names;
}

function readField(source: Source, statement: SyntaxNode, { from, keywordOnly, arrayLike, names }: FieldOf): ClassField | undefined {
  const annotation = statement.getChild("TypeDef");
  // An attribute of the class without a type is no field.
  if (annotation === null) return undefined;
  const [target] = childrenOf(statement);
  if (target?.name !== "VariableName") throw source.error(statement, "a field of a form that is not known");
  const python = source.of(target);
  const [typeNode] = childrenOf(annotation);
  if (typeNode === undefined) throw source.error(annotation, "a type of a form that is not known");
  if (names.plainOf(source.of(typeNode).split("[")[0] ?? "") === "ClassVar") return undefined;
  const type = readType(source, typeNode, names);
  const valueNode = allChildrenOf(statement).at(-1);
  const value = valueNode === undefined || valueNode.name === "TypeDef" ? {} : readFieldValue(source, valueNode, type, names);
  const doc = commentOf(source, statement);
  return {
    // Names are not on the wire of an array.
    ...(value.key === undefined || arrayLike ? { name: python } : { name: value.key, python }),
    type,
    ...(value.default === undefined ? {} : { default: value.default }),
    from,
    keywordOnly,
    ...(doc === undefined ? {} : { doc }),
    place: source.placeOf(statement.from),
  };
}

/** The comment above a field, or behind it on its line. */
function commentOf(source: Source, statement: SyntaxNode): string | undefined {
  const last = source.placeOf(Math.max(statement.to - 1, statement.from)).line;
  const next = statement.nextSibling;
  if (next?.name === "Comment" && source.placeOf(next.from).line === last) return unfold(source.of(next).replace(/^#+/, ""));
  const above: string[] = [];
  for (let line = source.placeOf(statement.from).line - 2; line >= 0; line--) {
    const text = (source.lines[line] ?? "").trim();
    if (!text.startsWith("#")) break;
    above.unshift(text.replace(/^#+/, "").trim());
  }
  return above.length === 0 ? undefined : unfold(above.join(" "));
}

/** Text on one line. */
function unfold(text: string): string | undefined {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line === "" ? undefined : line;
}
