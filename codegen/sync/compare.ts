import { type Change, type Direction, judge } from "./change.ts";
import { compareFields, type FieldChange } from "./compare-fields.ts";
import { type Contract, type ContractStruct, spellType, spellValue, structsIn } from "./contract.ts";

/** What differs between two sources. */
export interface Difference {
  readonly before: string;
  readonly after: string;
  /** Structs in the order of the new source, then those that went. */
  readonly changes: readonly Change[];
  /** Classes that the schema leaves out on purpose. */
  readonly notInSchema: readonly string[];
  /** Structs of the schema that come from a file which was not given. */
  readonly notCompared: readonly { readonly name: string; readonly file: string }[];
}

/** Compares two sources. Documentation is compared where both are Python. */
export function compare(before: Contract, after: Contract): Difference {
  return new Comparison(before, after).run();
}

const identityOf = ({ python, name }: ContractStruct): string => python ?? name;

class Comparison {
  private readonly before: Contract;
  private readonly after: Contract;
  private readonly changes: Change[] = [];
  private readonly notInSchema = new Set<string>();
  private readonly notCompared = new Map<string, string>();

  constructor(before: Contract, after: Contract) {
    this.before = before;
    this.after = after;
  }

  run(): Difference {
    const old = new Map(this.before.structs.map((struct) => [identityOf(struct), struct]));
    const now = new Map(this.after.structs.map((struct) => [identityOf(struct), struct]));
    const removed = [...old.values()].filter((struct) => !now.has(identityOf(struct)) && this.counts(struct, this.after));
    const added = [...now.values()].filter((struct) => !old.has(identityOf(struct)) && this.counts(struct, this.before));
    const renamed = new Map(added.flatMap((struct) => this.findOld(struct, removed, added)));
    for (const struct of now.values()) {
      const other = old.get(identityOf(struct)) ?? renamed.get(struct);
      if (other !== undefined) this.compareStruct(other, struct);
      else if (added.includes(struct)) this.report(struct, { kind: "struct added", after: describe(struct) });
    }
    const gone = new Set(renamed.values());
    for (const struct of removed) if (!gone.has(struct)) this.report(struct, { kind: "struct removed", before: describe(struct) });
    return {
      before: this.before.name,
      after: this.after.name,
      changes: this.changes,
      notInSchema: [...this.notInSchema],
      notCompared: [...this.notCompared].map(([name, file]) => ({ name, file })),
    };
  }

  /** Whether a struct that one source has and the other has not is a difference. */
  private counts(struct: ContractStruct, other: Contract): boolean {
    if (other.leftOut.includes(identityOf(struct))) {
      this.notInSchema.add(identityOf(struct));
      return false;
    }
    // Of a Python source only files that were given can be compared.
    const { file } = struct;
    const own = other === this.after ? this.before : this.after;
    if (own.kind === "python" || file === undefined || other.structs.some((given) => given.file === file)) return true;
    this.notCompared.set(struct.name, file);
    return false;
  }

  /** The struct that a new one was before, where exactly one has all its fields. */
  private findOld(
    struct: ContractStruct,
    removed: readonly ContractStruct[],
    added: readonly ContractStruct[],
  ): [ContractStruct, ContractStruct][] {
    const alike = (list: readonly ContractStruct[]): ContractStruct[] => list.filter((other) => isAlike(other, struct));
    const [only, ...others] = alike(removed);
    return only === undefined || others.length > 0 || alike(added).length > 1 ? [] : [[struct, only]];
  }

  private compareStruct(old: ContractStruct, now: ContractStruct): void {
    const changedName = identityOf(old) !== identityOf(now);
    if (changedName) this.report(now, { kind: "struct renamed", before: identityOf(old), after: identityOf(now), probably: true });
    else if (old.tag !== now.tag) this.report(now, { kind: "tag changed", before: old.tag ?? "no tag", after: now.tag ?? "no tag" });
    if (old.layout !== now.layout) this.report(now, { kind: "layout changed", before: old.layout, after: now.layout });
    const documents = this.before.kind === "python" && this.after.kind === "python";
    if (documents && old.doc !== now.doc) this.report(now, { kind: "documentation changed", before: old.doc ?? "", after: now.doc ?? "" });
    const direction = this.directionOf(old) === "both" ? this.directionOf(now) : this.directionOf(old);
    for (const change of compareFields(old, now, documents)) this.report(now, change, direction);
  }

  private report(struct: ContractStruct, change: FieldChange, direction = this.directionOf(struct)): void {
    const { kind, at, hadDefault, ...rest } = change;
    const place = at?.place ?? (change.field === undefined ? struct.place : undefined);
    const judged = judge({
      kind,
      direction,
      layout: struct.layout,
      tagged: struct.tag !== undefined,
      ...(hadDefault === undefined ? {} : { hadDefault }),
    });
    this.changes.push({ struct: this.nameOf(struct), ...rest, kind, ...judged, ...(place === undefined ? {} : { place }) });
  }

  /** The name in the schema, where that is one of the sources. */
  private nameOf(struct: ContractStruct): string {
    const known = [...this.before.structs, ...this.after.structs].find(({ python }) => python === identityOf(struct));
    return known?.name ?? struct.name;
  }

  private directionOf(struct: ContractStruct, seen: readonly string[] = []): Direction {
    const known = struct.direction ?? this.find(identityOf(struct))?.direction ?? directionOfName(struct.name);
    if (known !== undefined) return known;
    const users = [...this.before.structs, ...this.after.structs].filter(
      (user) =>
        !seen.includes(user.name) &&
        user.name !== struct.name &&
        user.fields.some(({ type }) => structsIn(type).includes(identityOf(struct))),
    );
    const directions = new Set(users.map((user) => this.directionOf(user, [...seen, struct.name])));
    const [only] = directions;
    return directions.size === 1 && only !== undefined ? only : "both";
  }

  private find(name: string): ContractStruct | undefined {
    const all = [...this.before.structs, ...this.after.structs];
    return all.find((struct) => struct.direction !== undefined && identityOf(struct) === name);
  }
}

/** Who sends a struct, by the words that its name ends with. */
function directionOfName(name: string): Direction | undefined {
  if (/(Output|Out|OutSlim|Response|Reply|ReplySlim)$/.test(name)) return "reply";
  return /(Req|Input|Request|CallSlim)$/.test(name) ? "request" : undefined;
}

function describe({ layout, fields }: ContractStruct): string {
  return `${layout} of ${fields.length === 1 ? "1 field" : `${fields.length} fields`}`;
}

/** Whether two structs have the same fields, and enough of them for that to be no accident. */
function isAlike(one: ContractStruct, other: ContractStruct): boolean {
  const spell = ({ layout, fields }: ContractStruct): string =>
    [
      layout,
      ...fields.map(({ name, type, default: value }) => `${name}: ${spellType(type)} ${value === undefined ? "" : spellValue(value)}`),
    ].join();
  const own = one.fields.filter(({ from }) => from === undefined);
  const words = wordsOf(other.name);
  return own.length > 0 && spell(one) === spell(other) && wordsOf(one.name).some((word) => words.includes(word));
}

/** The words of a class's name besides those that most names end with. */
function wordsOf(name: string): string[] {
  return (name.match(/[A-Z]+(?![a-z])|[A-Z][a-z]+|\d+/g) ?? []).filter((word) => !/^(Req|Input|Output|Out|From|By)$/.test(word));
}
