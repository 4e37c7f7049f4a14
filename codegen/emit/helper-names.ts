import type { WireType } from "../../schema/dsl.ts";
import { typeName } from "./view.ts";

/** Names for the functions of types that the runtime has none for: one for each type, whatever their readable parts share. */
export class HelperNames {
  private readonly prefix: string;
  private readonly names = new Map<string, string>();
  private readonly taken: Set<string>;

  constructor(prefix: string, structs: readonly string[]) {
    this.prefix = prefix;
    this.taken = new Set(structs.map((struct) => prefix + struct));
  }

  /** The function's name; the first time it is asked for, `define` is called with it. */
  get(type: WireType, define: (name: string) => void): string {
    const key = JSON.stringify(type);
    const known = this.names.get(key);
    if (known !== undefined) return known;
    const stem = this.prefix + typeName(type);
    let name = stem;
    for (let n = 2; this.taken.has(name); n++) name = `${stem}${n}`;
    this.taken.add(name);
    this.names.set(key, name);
    define(name);
    return name;
  }
}
