/** A struct of a release, as the engine had it. */
export interface ReleasedStruct {
  /** The name in our schema. */
  readonly name: string;
  /** The class in the engine's source, where its name differs. */
  readonly python?: string;
  /** What defines it, where that is not `io_struct.py`. */
  readonly definedIn?: string;
  readonly layout: "array" | "map";
  /** Whether the first array element is the class's name. */
  readonly tagged?: true;
  /** Own fields in wire order, behind those that `base` names, in the words of Python: `success: bool = True`. */
  readonly fields: readonly string[];
  /** The class whose fields come first. */
  readonly base?: string;
}

/** What one release of an engine says on the wire: what a file that changed is compared with. */
export interface Release {
  /** The protocol's name. */
  readonly protocol: string;
  /** The release. */
  readonly release: string;
  /** Where its definitions were read. */
  readonly source: string;
  /** Fields that several structs begin with, by the name of their class. */
  readonly bases: Readonly<Record<string, readonly string[]>>;
  readonly structs: readonly ReleasedStruct[];
  /** Classes of the engine's source that the schema leaves out. */
  readonly leavesOut: readonly string[];
}
