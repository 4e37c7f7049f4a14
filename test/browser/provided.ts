// What the relay of the browser's tests tells them.
import type {} from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    readonly relayUrl: string;
    readonly relayToken: string;
  }
}
