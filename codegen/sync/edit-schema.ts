import { Node, type ObjectLiteralExpression, type SourceFile, SyntaxKind } from "ts-morph";
import { quote } from "../names.ts";
import { compareFields, type FieldChange } from "./compare-fields.ts";
import { type Contract, type ContractField, type ContractStruct, renameStructs } from "./contract.ts";
import type { PythonContract } from "./read-python.ts";
import { replaceText, type SchemaSource, type Written, type WrittenField } from "./schema-source.ts";
import { fieldsText, fieldText, typeText, valueText } from "./schema-text.ts";

/** A base of structs, with its name and fields. */
interface Base {
  readonly name: string;
  readonly fields: readonly ContractField[];
}

/** Makes the structs that a schema has already say what the engine's source says. Returns the files that it touched. */
export function editStructs(source: SchemaSource, schema: Contract, python: PythonContract): SourceFile[] {
  return new Editor(source, schema, python).run();
}

/** The base that a struct of the engine begins with, among those that are known. */
export function baseOf(struct: ContractStruct, bases: readonly Base[]): Base | undefined {
  return bases.find(({ name, fields }) => {
    const first = struct.fields.slice(0, fields.length);
    return fields.length > 0 && first.length === fields.length && first.every(({ from }) => from === name);
  });
}

class Editor {
  private readonly source: SchemaSource;
  private readonly schema: Contract;
  private readonly python: PythonContract;
  private readonly names: ReadonlyMap<string, string>;
  private readonly touched = new Set<SourceFile>();

  constructor(source: SchemaSource, schema: Contract, python: PythonContract) {
    this.source = source;
    this.schema = schema;
    this.python = python;
    this.names = new Map(schema.structs.flatMap(({ name, python: other }) => (other === undefined ? [] : [[other, name] as const])));
  }

  run(): SourceFile[] {
    const writtenBases = this.source.written("base");
    const bases = this.python.bases.filter(({ name }) => writtenBases.has(name));
    for (const base of bases) this.editBase(base);
    for (const struct of this.schema.structs) {
      const now = this.python.structs.find(({ name }) => name === (struct.python ?? struct.name));
      if (now !== undefined) this.editStruct(struct, now, bases);
    }
    return [...this.touched];
  }

  private editBase(base: ContractStruct): void {
    const user = this.schema.structs.find(({ fields }) => fields.some(({ from }) => from === base.name));
    const old = user?.fields.filter(({ from }) => from === base.name) ?? [];
    const written = this.source.written("base").get(base.name);
    if (user === undefined || written === undefined) return;
    this.editFields(written, { ...base, layout: user.layout, fields: old }, { ...base, layout: user.layout });
  }

  private editStruct(struct: ContractStruct, now: ContractStruct, bases: readonly Base[]): void {
    const find = (): Written => {
      const written = this.source.written("struct").get(struct.name);
      if (written === undefined) throw new Error(`${struct.name}: its definition is not found in ${this.source.folder}`);
      return written;
    };
    if (struct.layout !== now.layout) this.setOption(find(), "layout", quote(now.layout), "doc");
    if (struct.tag !== now.tag) {
      if (now.tag !== undefined && now.tag !== now.name)
        throw new Error(`${now.name}: a schema cannot say a tag that is not the class's name`);
      this.setOption(find(), "tagged", now.tag === undefined ? undefined : "true", "layout");
    }
    const base = baseOf(now, bases);
    if (base?.name !== struct.base) this.setOption(find(), "extends", base?.name, "fields");
    const own = now.fields.slice(base?.fields.length ?? 0);
    const oldOwn = struct.fields.filter(({ from }) => from === undefined);
    const old = base?.name === struct.base ? oldOwn : struct.fields.filter(({ from }) => from === undefined || from !== base?.name);
    this.editFields(find(), { ...struct, fields: old }, { ...now, fields: own }, oldOwn);
  }

  private setOption({ options }: Written, name: string, text: string | undefined, behind: string): void {
    const property = options.getProperty(name);
    this.touched.add(options.getSourceFile());
    if (text === undefined) removeProperty(options, name);
    else if (Node.isPropertyAssignment(property)) property.setInitializer(text);
    else insertProperty(options, name, text, behind);
  }

  /** Writes a list of fields anew where it differs; a field that stays keeps its text, wherever that stood. */
  private editFields({ options }: Written, old: ContractStruct, now: ContractStruct, kept: readonly ContractField[] = old.fields): void {
    const changes = compareFields(old, now, false);
    if (changes.length === 0 && kept.length === now.fields.length) return;
    const list = this.source.property(options, "fields");
    const written = this.source.fields(list);
    if (written === undefined) throw new Error(`${old.name}: its fields are written in a way that cannot be edited; edit them by hand`);
    const renamed = new Map(
      changes.flatMap(({ kind, field, before }) => (kind === "field renamed" && field !== undefined ? [[field, before] as const] : [])),
    );
    const texts = now.fields.map((field) => {
      const name = renamed.get(field.name) ?? field.name;
      const known = written.find((other) => (now.layout === "map" ? other.name : other.python) === name);
      const own = { ...field, type: renameStructs(field.type, this.names) };
      return known === undefined ? fieldText(own, now.layout) : this.editField(known, own, changes, renamed.has(field.name));
    });
    this.touched.add(options.getSourceFile());
    const property = options.getProperty("fields");
    if (Node.isPropertyAssignment(property)) replaceText(property.getInitializerOrThrow(), fieldsText(texts));
    else if (property !== undefined) replaceText(property, `fields: ${fieldsText(texts)}`);
  }

  private editField({ call, shared }: WrittenField, field: ContractField, changes: readonly FieldChange[], renamed: boolean): string {
    const own = changes.filter((change) => change.field === field.name);
    // A field that several structs share is edited for this one alone.
    const text = dedent(call.getText(), call.getIndentationLevel() * 2);
    if (own.length === 0) return shared ?? text;
    const scratch = this.source.project.createSourceFile(`${this.source.folder}/scratch.ts`, `(${text})`, { overwrite: true });
    const copy = scratch.getFirstDescendantByKind(SyntaxKind.CallExpression);
    const [name, type, options] = copy?.getArguments() ?? [];
    if (copy === undefined || name === undefined || type === undefined || !Node.isObjectLiteralExpression(options)) {
      throw new Error(`the field ${field.name} is written in a way that cannot be edited; edit it by hand`);
    }
    if (renamed) name.replaceWithText(quote(field.name));
    if (own.some(({ kind }) => kind.startsWith("type ") || kind.startsWith("nullable "))) type.replaceWithText(typeText(field.type));
    if (own.some(({ kind }) => kind.startsWith("default "))) {
      const property = options.getProperty("default");
      if (field.default === undefined) removeProperty(options, "default");
      else if (Node.isPropertyAssignment(property)) property.setInitializer(valueText(field.default));
      else insertProperty(options, "default", valueText(field.default));
    }
    const edited = scratch.getFirstDescendantByKindOrThrow(SyntaxKind.CallExpression).getText();
    this.source.project.removeSourceFile(scratch);
    return edited;
  }
}

function removeProperty(options: ObjectLiteralExpression, name: string): void {
  const members = options.getProperties().filter((property) => !("getName" in property && property.getName() === name));
  writeMembers(
    options,
    members.map((member) => member.getText()),
  );
}

/** Puts a property behind another one, or first. */
function insertProperty(options: ObjectLiteralExpression, name: string, text: string, behind?: string): void {
  const members = options.getProperties();
  const place = behind === undefined ? -1 : members.findIndex((property) => "getName" in property && property.getName() === behind);
  const texts = members.map((member) => member.getText());
  texts.splice(behind === "fields" ? place : place + 1, 0, `${name}: ${text}`);
  writeMembers(options, texts);
}

/** An object's members, each on a line where they were before. */
function writeMembers(options: ObjectLiteralExpression, members: readonly string[]): void {
  const indentation = /\n( *)\S/.exec(options.getText())?.[1];
  if (indentation === undefined) replaceText(options, `{ ${members.join(", ")} }`);
  else replaceText(options, `{\n${members.map((member) => `${indentation}${member},\n`).join("")}${indentation.slice(2)}}`);
}

/** Text with the indentation that it has in a list of fields. */
function dedent(text: string, by: number): string {
  return text.replaceAll(new RegExp(`\n {${by}}`, "g"), "\n    ");
}
