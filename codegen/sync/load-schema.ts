import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { runInThisContext } from "node:vm";
import { ts } from "ts-morph";
import type { ProtocolDefinition } from "../../schema/dsl.ts";
import * as dsl from "../../schema/dsl.ts";
import type { Release } from "../../schema/release.ts";
import { SchemaSource } from "./schema-source.ts";

/** What a schema's folder defines. */
export interface LoadedSchema {
  readonly protocol: ProtocolDefinition;
  readonly releases: readonly Release[];
}

/** Loads the schema of a folder. */
export function openSchema(folder: string): LoadedSchema {
  return loadSchema(new SchemaSource(folder));
}

/**
 * Runs a schema's source, as it is in memory. So it needs no compiler, sees edits that are not written yet, and gives the
 * constructors of this package to a schema wherever it stands.
 */
export function loadSchema({ project, folder }: SchemaSource): LoadedSchema {
  const modules = new Map<string, Record<string, unknown>>();
  const run = (path: string): Record<string, unknown> => {
    const known = modules.get(path);
    if (known !== undefined) return known;
    const exports: Record<string, unknown> = {};
    modules.set(path, exports);
    const file = project.getSourceFile(path);
    if (file === undefined) throw new Error(`${path}: there is no such file in the schema`);
    const { outputText } = ts.transpileModule(file.getFullText(), {
      compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
      fileName: path,
    });
    const require = (specifier: string): unknown => {
      if (/^enginewire\/schema$|(^|\/)dsl\.[jt]s$/.test(specifier)) return dsl;
      const target = join(dirname(path), specifier.replace(/\.js$/, ".ts"));
      return specifier.startsWith(".") && project.getSourceFile(target) !== undefined ? run(target) : createRequire(path)(specifier);
    };
    const body = runInThisContext(`(function (exports, require) {${outputText}\n})`, { filename: path }) as (
      exports: object,
      require: (specifier: string) => unknown,
    ) => void;
    body(exports, require);
    return exports;
  };
  const protocol = Object.values(run(join(folder, "index.ts"))).find(isProtocol);
  if (protocol === undefined) throw new Error(`${join(folder, "index.ts")} exports no protocol`);
  const recorded = join(folder, "releases/index.ts");
  const { releases = [] } = (project.getSourceFile(recorded) === undefined ? {} : run(recorded)) as {
    readonly releases?: readonly Release[];
  };
  return { protocol, releases };
}

function isProtocol(value: unknown): value is ProtocolDefinition {
  return typeof value === "object" && value !== null && "operations" in value && "structs" in value && "unions" in value;
}
