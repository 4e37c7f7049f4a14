import { describe, expect, it } from "vitest";
import { advertise, anyPortOf, checkBindAddress } from "../../../src/node/address.ts";
import { isEngineWireError } from "../../../src/wire/errors.ts";

const errorOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (isEngineWireError(error)) return error.message;
    throw error;
  }
  return "accepted";
};

describe("an address to bind", () => {
  it.each(["tcp://127.0.0.1:0", "tcp://*:30500", "tcp://[::1]:65535", "tcp://eth0:*", "ipc:///tmp/engine", `ipc://${"a".repeat(107)}`])(
    "can be %s",
    (address) => {
      expect(errorOf(() => checkBindAddress(address))).toBe("accepted");
    },
  );

  it.each([
    ["127.0.0.1:30500", "expected tcp://HOST:PORT or ipc://PATH"],
    ["tcp://127.0.0.1", "expected tcp://HOST:PORT or ipc://PATH"],
    ["tcp://127.0.0.1:65536", "port 65536 is above 65535"],
    ["udp://127.0.0.1:1", "expected tcp://HOST:PORT or ipc://PATH"],
    ["ipc://", "it has no path"],
    [`ipc://${"a".repeat(108)}`, "its path has 108 bytes and this platform allows 107"],
    [`ipc://${"é".repeat(54)}`, "its path has 108 bytes and this platform allows 107"],
  ])("cannot be %s", (address, why) => {
    expect(errorOf(() => checkBindAddress(address))).toContain(`invalid_argument: "${address}" is not an address to bind: ${why}`);
  });
});

describe("the address engines are told", () => {
  it("is the bound one, or the advertised host in place of a wildcard", () => {
    expect(advertise("tcp://127.0.0.1:5000", undefined)).toBe("tcp://127.0.0.1:5000");
    expect(advertise("tcp://0.0.0.0:5000", "trainer-7")).toBe("tcp://trainer-7:5000");
    expect(advertise("tcp://[::]:5000", "fe80::1")).toBe("tcp://[fe80::1]:5000");
  });

  it("is never a wildcard", () => {
    expect(errorOf(() => advertise("tcp://0.0.0.0:5000", undefined))).toContain("give `advertisedHost`");
  });

  it("shares the handshake's host", () => {
    expect(anyPortOf("tcp://10.0.0.1:30500")).toBe("tcp://10.0.0.1:0");
    expect(anyPortOf("ipc:///tmp/engine")).toBe("tcp://127.0.0.1:0");
  });
});
