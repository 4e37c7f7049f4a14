// biome-ignore-all assist/source/organizeImports: grouped by who uses it

// For users.
export { EngineWireError, type EngineWireErrorDetails, type ErrorCode, errorCodes, isEngineWireError } from "./errors.ts";
export { defaultMaxDepth, highestMaxDepth } from "./limits.ts";
export { decodeAny } from "./read-any.ts";
export type { Frames, Tensor } from "./tensor.ts";
export { type DynamicMap, type DynamicMapInit, Ext, Float, float } from "./values.ts";
export { encodeAny } from "./write-any.ts";

// For generated code.
export { type Failure, kindOf, within } from "./failure.ts";
export { type Head, prepareHead } from "./head.ts";
export { type ReadItem, readAny, readDict, readMap } from "./read-any.ts";
export {
  readFloat64List,
  readFloat64ListList,
  readInt32List,
  readInt32ListList,
  readInt64List,
  readInt64ListList,
} from "./read-number-lists.ts";
export { readFloat64, readInt32, readInt64, readInteger, readUint16, readUint32, readUint64 } from "./read-numbers.ts";
export { readStrList } from "./read-str-list.ts";
export { peekTag, readHead, readTag, unknownTag } from "./read-tag.ts";
export { decodeFramesWith, readTensor } from "./read-tensor.ts";
export { readRepeatedStr, readStr, readStrOrList } from "./read-text.ts";
export { missingElement, newList, readArrayHeader, readBin, readBool, readMapHeader, readNil } from "./read-values.ts";
export { decodeWith, enterReader, malformed, type Reader } from "./reader.ts";
export { skipValues } from "./skip.ts";
export { type WriteItem, writeAny, writeDict, writeMap } from "./write-any.ts";
export { writeInt32, writeInt64, writeUint16, writeUint32, writeUint64 } from "./write-integers.ts";
export {
  writeFloat64List,
  writeFloat64ListList,
  writeInt32List,
  writeInt32ListList,
  writeInt64List,
  writeInt64ListList,
} from "./write-number-lists.ts";
export { writeStrList } from "./write-str-list.ts";
export { checkObject, checkProperties, missingField, unknownUnionTag } from "./write-struct.ts";
export { encodeFramesWith, writeTensor } from "./write-tensor.ts";
export { writeStr, writeStrOrList } from "./write-text.ts";
export { invalidValue, writeArrayHeader, writeBin, writeBool, writeFloat64, writeHead, writeNil, writeRaw } from "./write-values.ts";
export { encodeWith, enterWriter, type Writer } from "./writer.ts";
