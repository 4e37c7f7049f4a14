// The package as a user gets it: packed, installed in an empty folder, typed, run, bundled. Takes a minute, so it runs by
// `npm run test:package`, not by `npm test`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const settings = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
let folder = "";

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
}

function failing(command: string, ...args: string[]): { status: number; stderr: string } {
  try {
    run(command, ...args);
  } catch (error) {
    return error as { status: number; stderr: string };
  }
  throw new Error(`${command} ${args.join(" ")} succeeded`);
}

const version = (name: string) => `${name}@${settings.devDependencies[name]}`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "enginewire-package-"));
  execFileSync("npm", ["pack", "--pack-destination", folder], { cwd: root, stdio: "ignore", timeout: 300_000 });
  const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  run("npm", "install", "--no-audit", "--no-fund", `./${tarball}`, version("zeromq"), version("typescript"), version("@types/node"));
}, 600_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the packed tarball", () => {
  it("contains what it needs and nothing else", () => {
    const top = readdirSync(join(folder, "node_modules/enginewire")).sort();
    expect(top).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "dist", "docs", "package.json"]);
    expect(readdirSync(join(folder, "node_modules/enginewire/docs")).every((name) => name.endsWith(".md"))).toBe(true);
  });

  it("runs the README's snippet, type-checked first", () => {
    const readme = readFileSync(join(folder, "node_modules/enginewire/README.md"), "utf8");
    const code = /^```ts run\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? "";
    writeFileSync(join(folder, "snippet.mts"), code);
    run(
      "npx",
      "tsc",
      "--strict",
      "--skipLibCheck",
      "false",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--lib",
      "es2023,esnext.disposable",
      "snippet.mts",
    );
    expect(run("node", "snippet.mjs")).toBe("engine 0: true, engine 1: true\n");
  });

  it("runs the demo by its command", () => {
    const printed = run("npx", "enginewire", "demo");
    expect(printed).toMatch(/pause, letting requests finish\s+engine 0\s+success: true/);
    expect(printed).toMatch(/wake: restore all memory\s+engine 1\s+success: true/);
  });

  it("says what failed where, and exits with 1", () => {
    const { status, stderr } = failing("npx", "enginewire", "demo", "--", "--fail-op", "UpdateWeightsFromDistributed#1=disk is full");
    expect(status).toBe(1);
    expect(stderr).toContain(
      'failed at "update weights, bucket 1 of 3": operation_failed: updateWeightsFromDistributed failed on 2 of 2 engines',
    );
    expect(stderr).toContain("engine 0: disk is full");
  });

  it("names the missing peer of the generator", () => {
    const { status, stderr } = failing("npx", "enginewire-codegen", "check");
    expect(status).toBe(1);
    expect(stderr).toMatch(/npm install .*(ts-morph|zod)/);
  });

  it("makes a schema and code from a fork's Python file, in a package of its own", () => {
    run("npm", "install", "--no-audit", "--no-fund", "--save-dev", version("ts-morph"), version("zod"), version("@lezer/python"));
    writeFileSync(
      join(folder, "io_struct.py"),
      "import msgspec\n\nclass PingReqInput(msgspec.Struct, array_like=True, tag=True):\n    text: str\n    count: int = 1\n\nclass PingReqOutput(msgspec.Struct, array_like=True, tag=True):\n    ok: bool\n",
    );
    const places = ["--schema", "engine-schema", "--out", "generated"];
    expect(failing("npx", "enginewire-codegen", "sync", "io_struct.py", ...places).status).toBe(1);
    const answers: Record<string, string> = { effect: '"read"', answers: '"at once"', timeoutMs: "1000", repeatable: "true" };
    for (const name of ["index.ts", "messages.ts"]) {
      const path = join(folder, "engine-schema", name);
      const text = readFileSync(path, "utf8");
      writeFileSync(
        path,
        text.replaceAll(/(\w+): decide\(".*"\)/g, (_, key: string) => `${key}: ${answers[key] ?? '"0.1.0"'}`),
      );
    }
    run("npx", "enginewire-codegen", "generate", ...places);
    expect(run("npx", "enginewire-codegen", "check", ...places, "--against", "io_struct.py")).toContain("say the same");
    expect(run("npx", "enginewire-codegen", "sync", "io_struct.py", ...places)).toContain("nothing to write");
    writeFileSync(
      join(folder, "fork.mts"),
      `import { encodePingReqInput } from "./generated/engine-schema/encoders.js";
import { decodePingReqInput } from "./generated/engine-schema/decoders.js";
const { text, count } = decodePingReqInput(encodePingReqInput({ text: "hi" }));
console.log(text, count);
`,
    );
    const strict = [
      "--strict",
      "--skipLibCheck",
      "false",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--lib",
      "es2023,esnext.disposable",
    ];
    run("npx", "tsc", ...strict, "fork.mts");
    run("npx", "tsc", ...strict, "--noEmit", "--allowImportingTsExtensions", "engine-schema/index.ts");
    expect(run("node", "fork.mjs")).toBe("hi 1\n");
  });

  it("keeps Node out of the neutral entry points", () => {
    const seen = new Set<string>();
    const foreign: string[] = [];
    function walk(file: string): void {
      if (seen.has(file)) return;
      seen.add(file);
      for (const { fileName: specifier } of ts.preProcessFile(readFileSync(file, "utf8")).importedFiles) {
        if (specifier.startsWith(".")) walk(resolve(dirname(file), specifier));
        else foreign.push(`${file}: ${specifier}`);
      }
    }
    for (const entry of [".", "./messages", "./wire", "./web"])
      walk(join(folder, "node_modules/enginewire", settings.exports[entry].default));
    expect(foreign).toEqual([]);
    expect(seen.size).toBeGreaterThan(20);
  });

  it("exports exactly what is written here", () => {
    const names = Object.keys(settings.exports).filter(
      (entry) => !["./package.json", "./zod", "./messages", "./opentelemetry"].includes(entry),
    );
    const script = `const all = {}; for (const entry of ${JSON.stringify(names)}) all[entry] = Object.keys(await import(entry.replace(".", "enginewire"))).sort(); console.log(JSON.stringify(all));`;
    writeFileSync(join(folder, "exports.mjs"), script);
    expect(JSON.parse(run("node", "exports.mjs"))).toMatchInlineSnapshot(`
      {
        ".": [
          "EngineWireError",
          "createClient",
          "errorCodes",
          "guardTable",
          "isEngineWireError",
          "memoryRegions",
          "operations",
        ],
        "./node": [
          "bind",
          "connect",
          "publishDiagnostics",
        ],
        "./relay": [
          "auditFile",
          "jsonWebTokens",
          "scopes",
          "serve",
          "staticTokens",
        ],
        "./schema": [
          "any",
          "base",
          "bool",
          "bytes",
          "constant",
          "decide",
          "dict",
          "f64",
          "field",
          "i32",
          "i64",
          "list",
          "literal",
          "map",
          "nullable",
          "operation",
          "protocol",
          "ref",
          "set",
          "str",
          "strOrList",
          "struct",
          "tensor",
          "tuple",
          "u16",
          "u32",
          "u64",
          "union",
          "value",
        ],
        "./testing": [
          "alternativesOf",
          "engineCoreDead",
          "logprobOf",
          "memoryPair",
          "positionOfToken",
          "ruleRefusal",
          "startEngine",
          "tokenOf",
          "weightsOfToken",
        ],
        "./web": [
          "connect",
          "openLink",
        ],
        "./wire": [
          "EngineWireError",
          "Ext",
          "Float",
          "checkObject",
          "checkProperties",
          "decodeAny",
          "decodeFramesWith",
          "decodeWith",
          "defaultMaxDepth",
          "encodeAny",
          "encodeFramesWith",
          "encodeWith",
          "enterReader",
          "enterWriter",
          "errorCodes",
          "float",
          "highestMaxDepth",
          "invalidValue",
          "isEngineWireError",
          "kindOf",
          "malformed",
          "missingElement",
          "missingField",
          "newList",
          "peekTag",
          "prepareHead",
          "readAny",
          "readArrayHeader",
          "readBin",
          "readBool",
          "readDict",
          "readFloat64",
          "readFloat64List",
          "readFloat64ListList",
          "readHead",
          "readInt32",
          "readInt32List",
          "readInt32ListList",
          "readInt64",
          "readInt64List",
          "readInt64ListList",
          "readInteger",
          "readMap",
          "readMapHeader",
          "readNil",
          "readRepeatedStr",
          "readStr",
          "readStrList",
          "readStrOrList",
          "readTag",
          "readTensor",
          "readUint16",
          "readUint32",
          "readUint64",
          "skipValues",
          "unknownTag",
          "unknownUnionTag",
          "within",
          "writeAny",
          "writeArrayHeader",
          "writeBin",
          "writeBool",
          "writeDict",
          "writeFloat64",
          "writeFloat64List",
          "writeFloat64ListList",
          "writeHead",
          "writeInt32",
          "writeInt32List",
          "writeInt32ListList",
          "writeInt64",
          "writeInt64List",
          "writeInt64ListList",
          "writeMap",
          "writeNil",
          "writeRaw",
          "writeStr",
          "writeStrList",
          "writeStrOrList",
          "writeTensor",
          "writeUint16",
          "writeUint32",
          "writeUint64",
        ],
      }
    `);
  });
});
