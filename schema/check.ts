import { checkDefault } from "./check-default.ts";
import { findShapeProblems } from "./check-shape.ts";
import { allFields, allStructs, framedStructs, leavesOf, membersOf, propertyOf } from "./derive.ts";
import type { OperationDefinition, ProtocolDefinition, RefusedWhen, StructDefinition, ValueDefinition, WireType } from "./dsl.ts";

/** Something a schema must not say, and where it says it. */
export interface Problem {
  /** Such as `tokenspeed.operations.pauseScheduler.reply`. */
  readonly place: string;
  /** What is wrong, and what to do. */
  readonly text: string;
}

/** A schema that is not legal. Its message lists every problem. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    super(`${count} in the schema:\n${problems.map(({ place, text }) => `- ${place}: ${text}`).join("\n")}`);
    this.problems = problems;
  }
}

/** Throws a `SchemaError` with every problem of a protocol's definition; returns the definition where there is none. */
export function checkProtocol(definition: ProtocolDefinition): ProtocolDefinition {
  // What has not the right shape cannot be looked into further.
  const shape = findShapeProblems(definition);
  const problems = shape.length > 0 ? shape : new Checker(definition).run();
  if (problems.length > 0) throw new SchemaError(problems);
  return definition;
}

const identifier = /^[A-Za-z][A-Za-z0-9_]*$/;
/** Timers of JavaScript run at once when given more. */
const longestTimer = 2 ** 31 - 1;

/** Properties that every object has, or that decoded structs have besides their fields. */
const reservedProperties = new Set(["$tag", ...Object.getOwnPropertyNames(Object.prototype)]);
/** What a client has besides its operations; one with a method `then` would be taken for a promise. */
const reservedOperations = new Set(["then", "connection", "control", "state", "reconcile", "capabilities", "close", ...reservedProperties]);

/** Types that generated code uses, and endings of the runtime's functions: `writeStr` must not be a struct's. */
const reservedStructs = new Set(
  `Any Array ArrayHeader Bin Bool Dict DynamicMap DynamicMapInit Float64 Float64List Float64ListList Frames FramesWith Head Int32 Int32List Int32ListList Int64 Int64List Int64ListList
  Integer Map MapHeader Nil Object Operation OperationName OperationTypes Promise Raw Reader ReadonlyMap RefusedValue RepeatedStr ReplyOf
  ReplyTag ReplyTypes RequestOf RequestTag RequestTypes Str StrList StrOrList String Symbol Tag Tensor Uint16 Uint32 Uint64 Uint8Array With
  Writer`.split(/\s+/),
);

class Checker {
  private readonly problems: Problem[] = [];
  private readonly structs: readonly StructDefinition[];
  /** Those that are encoded to several frames. */
  private readonly framed: ReadonlySet<string>;
  private readonly protocol: ProtocolDefinition;

  constructor(protocol: ProtocolDefinition) {
    this.protocol = protocol;
    this.structs = allStructs(protocol);
    this.framed = framedStructs(this.structs);
  }

  private report(place: string, text: string): void {
    this.problems.push({ place: `${this.protocol.name}.${place}`, text });
  }

  run(): readonly Problem[] {
    this.checkNames();
    for (const left of this.protocol.leavesOut ?? []) {
      const described = this.structs.some(({ name, python }) => (python ?? name) === left);
      if (described) this.report("leavesOut", `${left} is described, so it is not left out`);
    }
    for (const struct of this.structs) this.checkStruct(struct);
    for (const definition of this.protocol.values ?? []) this.checkValue(definition);
    this.checkContainment();
    this.checkOperations();
    for (const { name, members } of this.protocol.unions) {
      const structs = membersOf(this.protocol, members);
      if (structs.length === 0 && typeof members !== "string") this.report(`unions.${name}`, "has no members");
      for (const struct of structs) {
        if (struct.tagged !== true) this.report(`unions.${name}`, `${struct.name} has no tag to tell it by`);
        if (this.framed.has(struct.name)) this.report(`unions.${name}`, `${struct.name} can hold a tensor, and a union is one frame`);
      }
      this.findDuplicates(structs, ({ name: member }) => this.report(`unions.${name}`, `${member} is a member twice`));
    }
    return this.problems;
  }

  private findDuplicates<Item extends { readonly name: string }>(items: readonly Item[], report: (item: Item) => void): void {
    const seen = new Set<string>();
    for (const item of items) {
      if (seen.has(item.name)) report(item);
      seen.add(item.name);
    }
  }

  /** Every exported name is exported once. */
  private checkNames(): void {
    const { operations, unions, constants } = this.protocol;
    const exported = new Map<string, string>();
    const claim = (name: string, place: string): void => {
      const other = exported.get(name);
      if (other === undefined) exported.set(name, place);
      else this.report(place, `its name ${name} is taken by ${other}`);
    };
    for (const { name } of this.structs) {
      const place = `structs.${name}`;
      if (!identifier.test(name)) this.report(place, "a struct's name must be a name in TypeScript");
      if (reservedStructs.has(name) || name.startsWith("FieldsOf")) this.report(place, "generated code uses this name itself");
      if (exported.get(name) === place) this.report(place, "two structs have this name, and so this tag");
      else for (const suffix of ["", "Init", "Schema"]) claim(name + suffix, place);
    }
    for (const { name } of this.protocol.values ?? []) {
      const place = `values.${name}`;
      if (!identifier.test(name)) this.report(place, "a value's name must be a name in TypeScript");
      if (reservedStructs.has(name)) this.report(place, "generated code uses this name itself");
      for (const suffix of ["", "Init", "Schema"]) claim(name + suffix, place);
    }
    for (const { name } of unions) {
      if (!identifier.test(name)) this.report(`unions.${name}`, "a union's name must be a name in TypeScript");
      for (const suffix of ["", "Init"]) claim(name + suffix, `unions.${name}`);
    }
    for (const { name } of constants) {
      if (!identifier.test(name)) this.report(`constants.${name}`, "a constant's name must be a name in TypeScript");
      claim(name, `constants.${name}`);
    }
    for (const { name } of operations) {
      const place = `operations.${name}`;
      if (!identifier.test(name)) this.report(place, "an operation's name must be a name in TypeScript");
      if (reservedOperations.has(name)) this.report(place, "a client cannot have a method of this name");
    }
    this.findDuplicates(operations, ({ name }) => this.report(`operations.${name}`, "two operations have this name"));
  }

  private checkStruct(struct: StructDefinition): void {
    const place = `structs.${struct.name}`;
    if (struct.layout === "map" && struct.tagged === true) {
      this.report(place, "a map with a tag cannot be decoded: its tag may come after what it explains; use the array layout");
    }
    if (struct.python !== undefined && struct.tagged === true)
      this.report(place, "the name of a tagged struct is that of its class; leave out `python`");
    const wireNames = new Map<string, string>();
    const properties = new Map<string, string>();
    for (const field of allFields(struct)) {
      const at = `${place}.fields.${field.name}`;
      for (const name of field.alias === undefined ? [field.name] : [field.name, field.alias]) {
        if (wireNames.has(name)) this.report(at, `the wire name ${JSON.stringify(name)} is taken by the field ${wireNames.get(name)}`);
        else wireNames.set(name, field.name);
      }
      if (field.alias !== undefined && struct.layout === "array") this.report(at, "an alias means nothing where fields have no keys");
      const property = propertyOf(field);
      if (reservedProperties.has(property))
        this.report(at, `the property ${property} is reserved; give the field another with \`property\``);
      else if (properties.has(property)) {
        this.report(
          at,
          `the property ${property} is taken by the field ${properties.get(property)}; give one of them another with \`property\``,
        );
      } else properties.set(property, field.name);
      this.checkType(field.type, at, false);
      if (field.default !== undefined) {
        const text = checkDefault(field.type, field.default);
        if (text !== undefined) this.report(`${at}.default`, text);
      }
    }
  }

  private checkValue({ name, type }: ValueDefinition): void {
    const place = `values.${name}`;
    if (leavesOf(type).some((leaf) => leaf.kind === "tensor" || (leaf.kind === "struct" && this.framed.has(leaf.name)))) {
      this.report(place, "a value is one frame, and so holds no tensor; describe a struct");
    }
    this.checkType(type, place, false);
  }

  private checkType(type: WireType, place: string, inside: boolean): void {
    switch (type.kind) {
      case "list":
      case "set":
        this.checkType(type.item, place, true);
        return;
      case "map":
        this.checkType(type.value, place, true);
        return;
      case "tuple":
        if (type.items.length === 0) this.report(place, "a tuple needs items");
        for (const item of type.items) this.checkType(item, place, true);
        return;
      case "nullable":
        if (type.inner.kind === "nullable") this.report(place, "nullable of nullable: one nil cannot mean two things");
        else if (type.inner.kind === "any") this.report(place, "nullable of any: any holds nil already");
        this.checkType(type.inner, place, inside);
        return;
      case "literal":
        if (type.values.length === 0) this.report(place, "a literal needs values");
        if (new Set(type.values).size !== type.values.length) this.report(place, "a literal has one value twice");
        if (type.values.some((value) => typeof value === "number" && !Number.isSafeInteger(value))) {
          this.report(place, "a literal's numbers must be safe integers");
        }
        return;
      case "strOrList":
        if (inside) this.report(place, "strOrList is a field's own type; inside a list, tuple or map say what it is there");
        return;
      case "struct":
        if (!this.structs.some(({ name }) => name === type.name)) this.report(place, `there is no struct ${type.name}`);
        return;
      default:
        return;
    }
  }

  /** A struct that always contains another of its kind would never end. */
  private checkContainment(): void {
    const contained = new Map(this.structs.map((struct) => [struct.name, allFields(struct).flatMap(({ type }) => alwaysContained(type))]));
    for (const { name } of this.structs) {
      const reached = new Set<string>();
      const pending = [...(contained.get(name) ?? [])];
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        if (reached.has(next)) continue;
        reached.add(next);
        pending.push(...(contained.get(next) ?? []));
      }
      if (reached.has(name)) this.report(`structs.${name}`, "always contains another of itself; make the field nullable or a list");
    }
  }

  private checkOperations(): void {
    const requests = new Map<string, string>();
    const replies = new Map<string, string>();
    for (const operation of this.protocol.operations) {
      const place = `operations.${operation.name}`;
      for (const [role, struct, claimed, others] of [
        ["request", operation.request, requests, replies],
        ["reply", operation.reply, replies, requests],
      ] as const) {
        const at = `${place}.${role}`;
        if (struct.tagged !== true) this.report(at, `${struct.name} has no tag`);
        if (this.framed.has(struct.name)) this.report(at, `${struct.name} can hold a tensor, and a ${role} is one frame`);
        const other = claimed.get(struct.name);
        if (other !== undefined) this.report(at, `${struct.name} is the ${role} of ${other} already; a tag must name one operation`);
        else if (others.has(struct.name)) this.report(at, `${struct.name} is both a request and a reply`);
        else claimed.set(struct.name, operation.name);
      }
      if (operation.timeoutMs > longestTimer) this.report(`${place}.timeoutMs`, `timers reach no further than ${longestTimer} ms`);
      this.checkRefused(operation, place);
      this.checkSlim(operation, place);
    }
  }

  private checkSlim({ request, slim }: OperationDefinition, place: string): void {
    for (const field of [...Object.keys(slim?.rename ?? {}), ...(slim?.choice === undefined ? [] : [slim.choice.field])]) {
      if (!request.fields.some(({ name }) => name === field)) this.report(`${place}.slim`, `${request.name} has no field ${field}`);
    }
  }

  private checkRefused({ request, refuses = [] }: OperationDefinition, place: string): void {
    const at = `${place}.refuses`;
    for (const rule of refuses) {
      const find = (wanted: string) => allFields(request).find(({ name }) => name === wanted);
      const found = find(rule.field);
      if (found === undefined) this.report(at, `${request.name} has no field ${rule.field}`);
      else if (!applies(rule.when, found.type)) this.report(at, `the value of ${rule.field} cannot be ${rule.when}`);
      if (!("other" in rule)) continue;
      const other = find(rule.other);
      if (other === undefined) this.report(at, `${request.name} has no field ${rule.other}`);
      else if (rule.when !== "set without" && !applies(rule.when, other.type))
        this.report(at, `${rule.other} cannot be compared with ${rule.field}`);
    }
  }
}

/** Whether a rule can hold for values of a type. */
function applies(when: RefusedWhen["when"], type: WireType): boolean {
  const inner = type.kind === "nullable" ? type.inner : type;
  const item = inner.kind === "list" ? inner.item : undefined;
  switch (when) {
    case "empty":
      return canBeEmpty(type);
    case "an item is empty":
      return item !== undefined && canBeEmpty(item);
    case "an item is not one of":
      return item?.kind === "str";
    case "an item is below":
      return item !== undefined && (isInteger(item) || (item.kind === "list" && isInteger(item.item)));
    case "of another length than":
      return item !== undefined;
    case "below":
    case "above":
    case "not below":
      return isInteger(inner);
    case "set without":
      return inner.kind === "bool" || type.kind === "nullable";
  }
}

function isInteger({ kind }: WireType): boolean {
  return ["i32", "u16", "u32", "i64", "u64"].includes(kind);
}

function alwaysContained(type: WireType): string[] {
  if (type.kind === "struct") return [type.name];
  return type.kind === "tuple" ? type.items.flatMap(alwaysContained) : [];
}

function canBeEmpty(type: WireType): boolean {
  const { kind } = type.kind === "nullable" ? type.inner : type;
  return ["list", "map", "dict", "str", "bytes", "strOrList"].includes(kind);
}
