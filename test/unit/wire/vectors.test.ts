import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { afterAll, describe, expect, test, vi } from "vitest";
import * as native from "../../../src/messages.ts";
import { nativeText } from "../../../src/wire/native-text.ts";
import type { Messages } from "../../vectors/message.ts";
import type { Vector } from "../../vectors/notation.ts";
import { type Report, runCanonical, runDiffer, runLenient, runReject } from "../../vectors/run.ts";

function load(file: string): Vector[] {
  return JSON.parse(readFileSync(new URL(`../../vectors/${file}.json`, import.meta.url), "utf8")) as Vector[];
}

/** Cloned first, so that an `Ext` of another instance of the modules is the same. */
const equals = (one: unknown, other: unknown): boolean => isDeepStrictEqual(structuredClone(one), structuredClone(other));

async function loadPortable(): Promise<Messages> {
  vi.resetModules();
  vi.stubGlobal("process", { ...process, versions: {} });
  const portable = await import("../../../src/messages.ts");
  const { nativeText: hidden } = await import("../../../src/wire/native-text.ts");
  vi.unstubAllGlobals();
  expect(hidden).toBeNull();
  return portable;
}

test("Node's string methods are found in Node", () => {
  expect(nativeText).not.toBeNull();
});

// The counts are part of the test: an entry that is no longer looked at must not go unnoticed.
const files: readonly (readonly [
  file: string,
  run: (library: Messages, vectors: Vector[]) => Report,
  considered: number,
  unsafe: number,
])[] = [
  ["control-requests", (library, vectors) => runCanonical(library, vectors, equals), 179, 11],
  ["control-replies", (library, vectors) => runCanonical(library, vectors, equals), 138, 2],
  ["handshake", (library, vectors) => runCanonical(library, vectors, equals), 49, 3],
  ["generate", (library, vectors) => runCanonical(library, vectors, equals), 88, 3],
  ["abort", (library, vectors) => runCanonical(library, vectors, equals), 15, 0],
  ["output-batches", (library, vectors) => runCanonical(library, vectors, equals), 53, 4],
  ["decode-lenient", (library, vectors) => runLenient(library, vectors, equals), 213, 16],
  ["decode-reject", (library, vectors) => runReject(library, vectors), 944, 0],
  ["decode-differ", (library, vectors) => runDiffer(library, vectors, equals), 47, 0],
];

afterAll(() => {
  const counts = files.map(([file, , considered]) => `${file} ${considered}`).join(", ");
  const all = files.reduce((sum, [, , considered]) => sum + considered, 0);
  process.stdout.write(`${all} vectors, each in both string paths: ${counts}\n`);
});

describe.each(files)("%s", (file, run, considered, unsafe) => {
  test(`with Node's string methods: ${considered} entries`, () => {
    const report = run(native, load(file));
    expect(report.failures).toEqual([]);
    expect([report.considered, report.unsafe]).toEqual([considered, unsafe]);
  });

  test(`with the portable string functions: ${considered} entries`, async () => {
    const report = run(await loadPortable(), load(file));
    expect(report.failures).toEqual([]);
    expect([report.considered, report.unsafe]).toEqual([considered, unsafe]);
  });
});
