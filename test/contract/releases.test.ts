// Engines of releases whose requests are shorter than the schema's.
import { describe, expect, it } from "vitest";
import { type ClientOptions, createClient, type Operation, operations } from "../../src/index.ts";
import { decodeUpdateWeightFromDiskReqInput, encodeUpdateWeightFromDiskReqInput } from "../../src/messages.ts";
import type { BindOptions } from "../../src/node/index.ts";
import { unsupportedBecause } from "../../src/transport/capabilities.ts";
import { dropTrailing } from "../../src/wire/drop-trailing.ts";
import { encodeAny } from "../../src/wire/index.ts";
import type { ScriptedEngine } from "../faults/scripted-engine.ts";
import { failureOf, listen, scriptedEngine } from "../faults/scripted-group.ts";

const request = { modelPath: "/models/step-7", weightVersion: "7" };
// written by msgspec from the class of the wheel tokenspeed 0.1.1
const ofWheel = Buffer.from(
  "96bc557064617465576569676874" + "46726f6d4469736b526571496e707574" + "c0c0" + "ae2f6d6f64656c732f737465702d37" + "c0" + "a137",
  "hex",
);

async function connectReleases(versions: readonly string[], options: Partial<BindOptions> = {}, clientOptions: ClientOptions = {}) {
  const listener = await listen({ count: versions.length, ...options });
  const engines = versions.map((_, index) => scriptedEngine(listener, index));
  const registered = engines.map((engine, index) => engine.register(versions[index]));
  const [connection] = await Promise.all([listener.accept({ timeoutMs: 20_000 }), ...registered]);
  return { client: createClient(connection, { guard: false, ...clientOptions }), engines };
}

async function answer(engine: ScriptedEngine | undefined): Promise<Uint8Array> {
  const payload = Uint8Array.from((await engine?.receivePayload()) ?? []);
  await engine?.reply({ $tag: "UpdateWeightFromDiskReqOutput", success: true, message: "" });
  return payload;
}

describe("a field that an engine's release had not", () => {
  it("is left out for that engine, and for no other", async () => {
    const { client, engines } = await connectReleases(["tokenspeed-0.1.1", "tokenspeed-0.1.0", "tokenspeed-0.9.0", "unknown"]);
    const [replies, ...payloads] = await Promise.all([client.updateWeightFromDisk(request), ...engines.map(answer)]);
    expect(replies.map(({ engine }) => engine)).toEqual([0, 1, 2, 3]);
    const whole = encodeUpdateWeightFromDiskReqInput(request);
    expect(payloads.map((payload) => Buffer.from(payload).toString("hex"))).toEqual(
      [ofWheel, whole, whole, whole].map((payload) => Buffer.from(payload).toString("hex")),
    );
    expect(decodeUpdateWeightFromDiskReqInput(ofWheel)).toEqual(decodeUpdateWeightFromDiskReqInput(whole));
  });

  it.each([true, false])("is refused when set to %s, and nothing is sent", async (flushCache) => {
    const { client, engines } = await connectReleases(["tokenspeed-0.1.0", "tokenspeed-0.1.1"]);
    const failure = await failureOf(client.updateWeightFromDisk({ ...request, flushCache }));
    expect(failure).toMatchObject({
      code: "unsupported",
      engine: 1,
      operation: "updateWeightFromDisk",
      path: "UpdateWeightFromDiskReqInput.flushCache",
      stage: "queue",
    });
    expect(failure.message).toContain("engine 1 is of release 0.1.1, which does not know flushCache and would ignore it; leave it out");
    // whoever knows better says so
    const call = client.updateWeightFromDisk({ ...request, flushCache }, { release: "0.1.0" });
    const [, ...payloads] = await Promise.all([call, ...engines.map(answer)]);
    expect(payloads.map((payload) => decodeUpdateWeightFromDiskReqInput(payload).flushCache)).toEqual([flushCache, flushCache]);
  });

  const told: readonly [what: string, bind: Partial<BindOptions>, client: ClientOptions, call: object][] = [
    ["the connection", { release: "0.1.1" }, {}, {}],
    ["the client", {}, { release: "0.1.1" }, {}],
    ["the call", { release: "0.1.0" }, { release: "0.1.0" }, { release: "0.1.1" }],
  ];
  it.each(told)("is left out, or refused, when %s was told the release", async (_, bindOptions, clientOptions, callOptions) => {
    const { client, engines } = await connectReleases(["unknown"], bindOptions, clientOptions);
    const [, payload] = await Promise.all([client.updateWeightFromDisk(request, callOptions), answer(engines[0])]);
    expect(Buffer.from(payload)).toEqual(ofWheel);
    expect(await failureOf(client.updateWeightFromDisk({ ...request, flushCache: true }, callOptions))).toMatchObject({
      code: "unsupported",
    });
  });

  it("is asked for nothing that a newer told release has", async () => {
    const { client, engines } = await connectReleases(["tokenspeed-0.1.1"], { release: "0.1.0" });
    const [, payload] = await Promise.all([client.updateWeightFromDisk({ ...request, flushCache: false }), answer(engines[0])]);
    expect(decodeUpdateWeightFromDiskReqInput(payload).flushCache).toBe(false);
    expect(client.connection.engines[0]?.capabilities.release).toBe("0.1.0");
  });
});

describe("a release that is not recorded", () => {
  it("is no release that anything can be told", async () => {
    const release = "0.2.0" as "0.1.0";
    const refused = { code: "invalid_argument", path: "release", message: expect.stringContaining("one of 0.1.0, 0.1.1, got 0.2.0") };
    expect(await failureOf(listen({ release }))).toMatchObject(refused);
    const { client } = await connectReleases(["unknown"]);
    expect(() => createClient(client.connection, { release })).toThrow(expect.objectContaining(refused));
    expect(await failureOf(client.isSleeping({}, { release }))).toMatchObject(refused);
  });
});

describe("a release that would misread a request", () => {
  it("is not sent it", () => {
    const operation: Operation = { ...operations.pauseScheduler, misreadBy: ["0.1.1"] };
    const capabilities = { control: true, dialect: "tagged" } as const;
    expect(unsupportedBecause({ ...capabilities, release: "0.1.1" }, operation)).toMatch(/other fields in their places/);
    expect(unsupportedBecause({ ...capabilities, release: "0.1.0" }, operation)).toBeUndefined();
    expect(unsupportedBecause(capabilities, operation)).toBeUndefined();
  });
});

describe("dropTrailing", () => {
  it.each([0, 1, 15, 16, 17, 65_535, 65_536])("takes the last elements off an array of %i more", (length) => {
    const values = Array.from({ length }, (_, index) => (index < 400 ? [{ text: "é".repeat(index % 5) }, new Uint8Array(index)] : index));
    const shorter = dropTrailing(encodeAny([...values, ["x"], { y: 1 }]), 2);
    expect(Buffer.compare(shorter, encodeAny(values))).toBe(0);
  });
});
