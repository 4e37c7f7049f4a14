import { expect, it } from "vitest";
import { checkProtocol } from "../../../schema/check.ts";
import { createClient, operations } from "../../../src/index.ts";
import type { Connection } from "../../../src/transport/connection.ts";
import { call, protocolOf } from "../../codegen/small-schema.ts";

// What a client has besides its operations must be refused as the name of one, or it would be replaced by it.
it("an operation cannot take the name of anything else a client has", () => {
  async function* events() {}
  const connection = { engines: [], events } as unknown as Connection;
  const members = Object.keys(createClient(connection)).filter((name) => !(name in operations));
  expect(members.sort()).toEqual(["capabilities", "close", "connection", "control", "reconcile", "state"]);
  for (const name of members) expect(() => checkProtocol(protocolOf([], { operations: [call(name)] }))).toThrow(name);
});
