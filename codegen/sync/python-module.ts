import { allChildrenOf, childrenOf, parsePython, type SyntaxNode, statementsOf } from "./python-syntax.ts";
import type { Source } from "./source.ts";

/** A name that a file defines at its top. */
export interface Definition {
  readonly kind: "class" | "value";
  readonly name: string;
  /** The class definition, or the expression of a constant or an alias. */
  readonly node: SyntaxNode;
  /** Decorators of a class. */
  readonly decorators: readonly SyntaxNode[];
  /** Whether the name is assigned more than once, so that nobody knows which value holds. */
  readonly repeated: boolean;
}

/** A name that a file imports. */
export interface Import {
  /** The module, such as `msgspec`. */
  readonly module: string;
  /** The name there; absent where the module itself is imported. */
  readonly name?: string;
}

/** The names of one file. */
export interface PythonModule {
  readonly source: Source;
  readonly definitions: ReadonlyMap<string, Definition>;
  readonly imports: ReadonlyMap<string, Import>;
  /** Names of functions, which are no types. */
  readonly functions: readonly SyntaxNode[];
}

/** Finds out what a file defines and imports. */
export function openModule(source: Source): PythonModule {
  const collector = new Collector(source);
  for (const statement of statementsOf(parsePython(source))) collector.take(statement, false);
  return collector;
}

class Collector implements PythonModule {
  readonly source: Source;
  readonly definitions = new Map<string, Definition>();
  readonly imports = new Map<string, Import>();
  readonly functions: SyntaxNode[] = [];

  constructor(source: Source) {
    this.source = source;
  }

  take(statement: SyntaxNode, conditional: boolean): void {
    switch (statement.name) {
      case "ImportStatement":
        this.takeImport(statement);
        return;
      case "ClassDefinition":
        this.takeClass(statement, [], conditional);
        return;
      case "DecoratedStatement": {
        const parts = childrenOf(statement);
        const target = parts.at(-1);
        if (target?.name === "ClassDefinition") this.takeClass(target, parts.slice(0, -1), conditional);
        else if (target !== undefined) this.functions.push(target);
        return;
      }
      case "FunctionDefinition":
        this.functions.push(statement);
        return;
      case "AssignStatement":
      case "TypeDefinition":
        this.takeValue(statement, conditional);
        return;
      case "IfStatement":
      case "TryStatement":
      case "WithStatement":
        for (const child of childrenOf(statement)) {
          if (child.name === "Body") for (const inner of statementsOf(child)) this.take(inner, true);
        }
    }
  }

  private takeClass(node: SyntaxNode, decorators: readonly SyntaxNode[], conditional: boolean): void {
    const nameNode = node.getChild("VariableName") ?? node;
    const name = this.source.of(nameNode);
    if (this.definitions.has(name)) {
      if (!conditional) throw this.source.error(nameNode, "this name is defined twice");
      this.repeat(name);
      return;
    }
    this.definitions.set(name, { kind: "class", name, node, decorators, repeated: conditional });
  }

  private takeValue(statement: SyntaxNode, conditional: boolean): void {
    const parts = childrenOf(statement);
    const [target] = parts;
    const value = parts.at(-1);
    if (target?.name !== "VariableName" || value === undefined || value.name === "TypeDef" || value === target) return;
    const name = this.source.of(target);
    if (this.definitions.get(name)?.kind === "class") throw this.source.error(target, "this name is defined twice");
    const repeated = conditional || this.definitions.has(name) || parts.filter((part) => part.name !== "TypeDef").length > 2;
    this.definitions.set(name, { kind: "value", name, node: value, decorators: [], repeated });
  }

  private repeat(name: string): void {
    const known = this.definitions.get(name);
    if (known !== undefined) this.definitions.set(name, { ...known, repeated: true });
  }

  // The names between `from`, `import`, `as` and commas; a module's dots are part of its name.
  private takeImport(statement: SyntaxNode): void {
    let module = "";
    let names = false;
    let current = "";
    let alias = "";
    let renaming = false;
    const finish = (): void => {
      if (current !== "") {
        if (module === "")
          this.imports.set(alias === "" ? (current.split(".")[0] ?? current) : alias, {
            module: alias === "" ? (current.split(".")[0] ?? current) : current,
          });
        else this.imports.set(alias === "" ? current : alias, { module, name: current });
      }
      [current, alias, renaming] = ["", "", false];
    };
    const from = allChildrenOf(statement)[0]?.name === "from";
    for (const child of allChildrenOf(statement)) {
      if (child.name === "import") names = true;
      else if (child.name === "as") renaming = true;
      else if (child.name === ",") finish();
      else if (child.name === "VariableName" || child.name === ".") {
        const text = this.source.of(child);
        if (from && !names) module += text;
        else if (renaming) alias = text;
        else current += text;
      }
    }
    finish();
  }
}
