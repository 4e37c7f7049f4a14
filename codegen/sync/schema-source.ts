import {
  type ArrayLiteralExpression,
  type CallExpression,
  type Expression,
  IndentationText,
  Node,
  type ObjectLiteralExpression,
  Project,
  QuoteKind,
  type SourceFile,
  SyntaxKind,
} from "ts-morph";

/** A definition in the schema's source: `struct("Name", { ... })`. */
export interface Written {
  readonly name: string;
  readonly call: CallExpression;
  readonly options: ObjectLiteralExpression;
}

/** A field as it is written, wherever that is. */
export interface WrittenField {
  readonly name: string;
  /** The name in the engine's source. */
  readonly python: string;
  readonly call: CallExpression;
  /** The name that stands for it in the list, where it is shared. */
  readonly shared?: string;
}

/** Replaces a node's text as it is: ts-morph itself would indent the lines once more. Nodes of the file are lost. */
export function replaceText(node: Node, text: string): void {
  const file = node.getSourceFile();
  const whole = file.getFullText();
  file.replaceWithText(whole.slice(0, node.getStart()) + text + whole.slice(node.getEnd()));
}

/** The files of a schema's folder, to be edited in memory. */
export class SchemaSource {
  readonly project: Project;
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    this.project = new Project({
      skipLoadingLibFiles: true,
      skipFileDependencyResolution: true,
      skipAddingFilesFromTsConfig: true,
      manipulationSettings: { indentationText: IndentationText.TwoSpaces, quoteKind: QuoteKind.Double, useTrailingCommas: true },
    });
    this.project.addSourceFilesAtPaths([`${folder}/*.ts`, `!${folder}/*.d.ts`, `${folder}/releases/*.ts`]);
  }

  /** The definitions that a constructor of the schema makes, by name. */
  written(kind: "struct" | "base" | "operation" | "protocol"): Map<string, Written> {
    const found = new Map<string, Written>();
    for (const file of this.project.getSourceFiles()) {
      for (const call of file.getDescendantsOfKind(SyntaxKind.CallExpression)) {
        if (call.getExpression().getText() !== kind) continue;
        const [name, options] = call.getArguments();
        if (Node.isStringLiteral(name) && Node.isObjectLiteralExpression(options)) {
          found.set(name.getLiteralText(), { name: name.getLiteralText(), call, options });
        }
      }
    }
    return found;
  }

  /** A property's value in an object, through names that stand for it in the same file. */
  property(options: ObjectLiteralExpression, name: string): Expression | undefined {
    const property = options.getProperty(name);
    if (Node.isPropertyAssignment(property)) return this.resolve(property.getInitializerOrThrow());
    return Node.isShorthandPropertyAssignment(property) ? this.resolve(property.getNameNode()) : undefined;
  }

  /** The array that a property holds, wherever it is written. */
  list(options: ObjectLiteralExpression, name: string): ArrayLiteralExpression | undefined {
    const value = this.property(options, name);
    return Node.isArrayLiteralExpression(value) ? value : undefined;
  }

  /** The fields of a list, those that are spread into it or shared by name included; undefined where one is not understood. */
  fields(list: Expression | undefined): WrittenField[] | undefined {
    if (!Node.isArrayLiteralExpression(list)) return undefined;
    const found: WrittenField[] = [];
    for (const element of list.getElements()) {
      const spread = Node.isSpreadElement(element) ? this.fields(this.resolve(element.getExpression())) : undefined;
      const own = Node.isSpreadElement(element) ? undefined : writtenField(this.resolve(element));
      if (spread !== undefined) found.push(...spread);
      else if (own !== undefined) found.push(Node.isIdentifier(element) ? { ...own, shared: element.getText() } : own);
      else return undefined;
    }
    return found;
  }

  /** What a name stands for, in its file or in one that it is imported from. */
  private resolve(expression: Expression): Expression {
    if (!Node.isIdentifier(expression)) return expression;
    const name = expression.getText();
    const file = expression.getSourceFile();
    const own = file.getVariableDeclaration(name)?.getInitializer();
    if (own !== undefined) return this.resolve(own);
    const imported = file
      .getImportDeclarations()
      .find((declaration) => declaration.getNamedImports().some((item) => item.getName() === name));
    const other = this.fileOf(file, imported?.getModuleSpecifierValue());
    const initializer = other?.getVariableDeclaration(name)?.getInitializer();
    return initializer === undefined ? expression : this.resolve(initializer);
  }

  /** The file of this schema that an import names. */
  fileOf(from: SourceFile, specifier: string | undefined): SourceFile | undefined {
    if (specifier?.startsWith(".") !== true) return undefined;
    const wanted = specifier.replace(/\.js$/, ".ts");
    return (
      from.getDirectory().getSourceFile(wanted) ?? this.project.getSourceFile(`${from.getDirectoryPath()}/${wanted.replace(/^\.\//, "")}`)
    );
  }

  /** Imports names of the schema's constructors, where a file uses them and does not have them yet. */
  importConstructors(file: SourceFile, specifier: string): void {
    const used = new Set(file.getDescendantsOfKind(SyntaxKind.Identifier).map((node) => node.getText()));
    const declaration =
      file.getImportDeclaration((item) => item.getModuleSpecifierValue() === specifier) ??
      file.insertImportDeclaration(0, { moduleSpecifier: specifier, namedImports: [] });
    const present = declaration.getNamedImports().map((item) => item.getName());
    const missing = constructors.filter(
      (name) => used.has(name) && !present.includes(name) && file.getVariableDeclaration(name) === undefined,
    );
    if (missing.length === 0) return;
    const all = [...declaration.getNamedImports().map((item) => item.getText()), ...missing].sort((a, b) => (a < b ? -1 : 1));
    declaration.removeNamedImports();
    declaration.addNamedImports(all);
  }
}

const constructors =
  `any base bool bytes constant decide dict f64 field i32 i64 list literal map nullable operation protocol ref set str strOrList
  struct tensor tuple u16 u32 u64 union`.split(/\s+/);

function writtenField(value: Expression): WrittenField | undefined {
  if (!Node.isCallExpression(value) || value.getExpression().getText() !== "field") return undefined;
  const [name, , options] = value.getArguments();
  if (!Node.isStringLiteral(name)) return undefined;
  const property = Node.isObjectLiteralExpression(options) ? options.getProperty("python") : undefined;
  const python = Node.isPropertyAssignment(property) ? property.getInitializer() : undefined;
  return {
    name: name.getLiteralText(),
    python: Node.isStringLiteral(python) ? python.getLiteralText() : name.getLiteralText(),
    call: value,
  };
}
