import type { Release, ReleasedStruct } from "../../schema/release.ts";
import { type Contract, type ContractField, type ContractStruct, spellType, spellValue } from "./contract.ts";
import { readPython } from "./read-python.ts";

/** What a recorded release says. Its fields are in the words of Python, and are read by the same reader. */
export function readRelease(release: Release): Contract {
  const name = `${release.protocol}@${release.release}`;
  const text = [
    "from typing import Any, Literal\nfrom torch import Tensor\nimport msgspec\n",
    importsOf(release),
    ...Object.entries(release.bases).map(([base, fields]) => classOf(base, "msgspec.Struct, kw_only=True", fields)),
    ...release.structs.map((struct) => {
      const options = `kw_only=True, array_like=${struct.layout === "array" ? "True" : "False"}, tag=${struct.tagged === true ? "True" : "False"}`;
      return classOf(struct.python ?? struct.name, `${struct.base ?? "msgspec.Struct"}, ${options}`, struct.fields);
    }),
  ].join("\n");
  const { structs } = readPython({ file: name, bytes: new TextEncoder().encode(text) });
  const known = new Map(release.structs.map((struct) => [struct.python ?? struct.name, struct]));
  const own = structs.flatMap((struct) => {
    const recorded = known.get(struct.name);
    return recorded === undefined ? [] : [withNames(struct, recorded)];
  });
  return { name, kind: "release", structs: own, leftOut: release.leavesOut };
}

/** Imports of classes that fields name and the release has not: their files were not given when it was recorded. */
function importsOf({ structs, bases }: Release): string {
  const known = new Set(["Any", "Literal", "Tensor", "None", "True", "False", ...structs.map(({ name, python }) => python ?? name)]);
  const fields = [...structs.flatMap((struct) => struct.fields), ...Object.values(bases).flat()];
  const names = new Set(fields.flatMap((field) => field.match(/\b[A-Z]\w*/g) ?? []).filter((name) => !known.has(name)));
  return [...names].map((name) => `from elsewhere import ${name}\n`).join("");
}

function classOf(name: string, bases: string, fields: readonly string[]): string {
  return `class ${name}(${bases}):\n${fields.length === 0 ? "    pass\n" : fields.map((field) => `    ${field}\n`).join("")}`;
}

function withNames({ layout, tag, fields, base }: ContractStruct, { name, python, definedIn }: ReleasedStruct): ContractStruct {
  return {
    name,
    layout,
    ...(tag === undefined ? {} : { tag }),
    ...(base === undefined ? {} : { base }),
    ...(python === undefined ? {} : { python }),
    ...(definedIn === undefined ? {} : { file: definedIn }),
    fields: fields.map(({ place: _, ...field }) => field),
  };
}

/** A source as a release to be recorded, with the structs of the schema only. */
export function recordRelease(source: Contract, schema: Contract, about: Pick<Release, "protocol" | "release" | "source">): Release {
  const found = new Map(source.structs.map((struct) => [struct.python ?? struct.name, struct]));
  const bases: Record<string, readonly string[]> = {};
  const structs = schema.structs.flatMap((struct): ReleasedStruct[] => {
    const own = found.get(struct.python ?? struct.name);
    if (own === undefined) return [];
    const fields = own.fields.map(spellField);
    const base = struct.base === own.base ? own.base : undefined;
    // The schema knows how many fields the base has.
    const shared = base === undefined ? [] : fields.slice(0, own.fields.filter(({ from }) => from === base).length);
    if (base !== undefined) bases[base] = shared;
    return [
      {
        name: struct.name,
        layout: own.layout,
        ...(own.tag === undefined ? {} : { tagged: true }),
        ...(struct.python === undefined ? {} : { python: struct.python }),
        ...(struct.file === undefined ? {} : { definedIn: struct.file }),
        ...(base === undefined ? {} : { base }),
        fields: fields.slice(shared.length),
      },
    ];
  });
  return { ...about, bases, structs, leavesOut: schema.leftOut };
}

function spellField({ name, python, type, default: value }: ContractField): string {
  return `${python ?? name}: ${spellType(type, false)}${value === undefined ? "" : ` = ${spellValue(value)}`}`;
}
