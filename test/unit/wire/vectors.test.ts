import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as messages from "../../../src/messages.ts";
import { decodeStruct, encodeStruct, payloadIndex, structOf } from "../../vectors/message.ts";
import { fromHex, toHex, type Vector } from "../../vectors/notation.ts";

const load = (n: string): Vector[] => JSON.parse(readFileSync(new URL(`../../vectors/${n}.json`, import.meta.url), "utf8"));
describe("vectors", () => {
  for (const file of ["control-requests", "control-replies", "handshake"])
    test(file, () => {
      let n = 0,
        unsafe = 0;
      for (const v of load(file)) {
        const hex = v.frames[payloadIndex(v)] as string;
        try {
          const d = decodeStruct(messages, v.type, fromHex(hex), 1000);
          expect(d, v.name).toEqual(structOf(v.type, v.value as never, false));
          expect(toHex(encodeStruct(messages, v.type, structOf(v.type, v.value as never, true), 1000)), v.name).toBe(hex);
        } catch (e) {
          if ((e as { code?: string }).code === "unsafe_integer") {
            unsafe++;
            continue;
          }
          throw e;
        }
        n++;
      }
      console.log(file, n, unsafe);
    });
});
