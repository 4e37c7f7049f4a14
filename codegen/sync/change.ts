import type { Place } from "./contract.ts";

/** What can happen to the wire. */
export type ChangeKind =
  | "struct added"
  | "struct removed"
  | "struct renamed"
  | "tag changed"
  | "layout changed"
  | "field appended with default"
  | "field appended without default"
  | "field inserted"
  | "field removed"
  | "last field removed"
  | "fields reordered"
  | "field renamed"
  | "type widened"
  | "type narrowed"
  | "type changed"
  | "nullable added"
  | "nullable removed"
  | "default added"
  | "default removed"
  | "default changed"
  | "documentation changed";

/** What a change means for peers of different age. */
export type ChangeClass =
  | "compatible"
  | "breaking for requests"
  | "breaking for replies"
  | "breaking for requests and replies"
  | "documentation";

/** Who sends a struct; `both` where that is not known. */
export type Direction = "request" | "reply" | "both";

/** One change with its class. */
export interface Change {
  readonly struct: string;
  readonly field?: string;
  readonly kind: ChangeKind;
  readonly class: ChangeClass;
  /** What an old peer and a new peer do. */
  readonly meaning: string;
  readonly before?: string;
  readonly after?: string;
  /** Whether it is a guess that two names are one. */
  readonly probably?: true;
  readonly place?: Place;
}

/** What a change is judged by. */
export interface Judged {
  readonly kind: ChangeKind;
  readonly direction: Direction;
  readonly layout: "array" | "map";
  /** Whether a field that goes or changes has a default in the old source. */
  readonly hadDefault?: boolean;
  /** Whether the struct has a tag. */
  readonly tagged?: boolean;
}

/** The class of a change, and a sentence on what peers of different age do. */
export function judge(judged: Judged): { readonly class: ChangeClass; readonly meaning: string } {
  const { kind, direction, layout } = judged;
  const [sender, receiver] = peers[direction];
  const breaking = (meaning: string) => ({ class: breakingFor[direction], meaning });
  const compatible = (meaning: string) => ({ class: "compatible" as const, meaning });
  switch (kind) {
    case "struct added":
      return compatible(`An old ${receiver} does not know it, so it must not be sent there.`);
    case "struct removed":
      return breaking(`A new ${receiver} does not know what an old ${sender} still sends.`);
    case "struct renamed":
      if (judged.tagged !== true) return compatible("Its name is not on the wire: only source code changes.");
      return breaking("The name is the tag, so old and new peers do not know each other's message.");
    case "tag changed":
      return breaking("Old and new peers do not know each other's message.");
    case "layout changed":
      return breaking("One peer sends an array where the other expects a map: each refuses the other's message.");
    case "field appended with default":
      return compatible(`A new ${receiver} takes the default where an old ${sender} leaves it out; an old ${receiver} ignores it.`);
    case "field appended without default":
      return breaking(`A new ${receiver} refuses what an old ${sender} sends, because it is missing there; an old ${receiver} ignores it.`);
    case "field inserted":
    case "field removed":
      return breaking("All fields behind it move: old and new peers take them for one another, or refuse them.");
    case "last field removed":
      if (judged.hadDefault === true)
        return compatible(`An old ${receiver} takes its default; a new ${receiver} ignores the value an old ${sender} sends.`);
      return breaking(`An old ${receiver} refuses what a new ${sender} sends, because it is missing there.`);
    case "fields reordered":
      if (layout === "map") return { class: "documentation", meaning: "Keys are found by name: nothing changes on the wire." };
      return breaking("Old and new peers take the fields for one another, or refuse them.");
    case "field renamed":
      if (layout === "array") return compatible("Names are not on the wire of an array: only source code changes.");
      return breaking("Old and new peers do not find each other's key.");
    case "type widened":
    case "nullable added":
      if (direction === "request") return compatible("A new engine takes all that an old client sends; an old engine refuses what is new.");
      return { class: breakingFor[direction], meaning: `An old ${receiver} refuses what a new ${sender} may send.` };
    case "type narrowed":
    case "nullable removed":
      return breaking(`A new ${receiver} refuses what an old ${sender} may send.`);
    case "type changed":
      return breaking("Old and new peers refuse each other's values, or take them for something else.");
    case "default added":
      return compatible(`A new ${receiver} also takes messages without it; a new ${sender} must still send it to an old ${receiver}.`);
    case "default removed":
      return breaking(`A new ${receiver} refuses messages of an old ${sender} that leave it out.`);
    case "default changed":
      return compatible("Messages that leave it out mean something else to an old and to a new peer; those that hold it do not.");
    case "documentation changed":
      return { class: "documentation", meaning: "Nothing changes on the wire." };
  }
}

const peers: Readonly<Record<Direction, readonly [sender: string, receiver: string]>> = {
  request: ["client", "engine"],
  reply: ["engine", "client"],
  both: ["sender", "receiver"],
};

const breakingFor: Readonly<Record<Direction, ChangeClass>> = {
  request: "breaking for requests",
  reply: "breaking for replies",
  both: "breaking for requests and replies",
};
