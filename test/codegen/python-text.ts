import { spellType, spellValue } from "../../codegen/sync/contract.ts";
import { type PythonContract, readPython } from "../../codegen/sync/read-python.ts";

const imports = `from __future__ import annotations
from enum import Enum, IntEnum, auto
from typing import Any, ClassVar, Literal, Optional, Union
import typing as t
import msgspec
from dataclasses import dataclass

class BaseReq(msgspec.Struct, tag=True, tag_field="_tag", kw_only=True, array_like=True):
    rid: str | list[str] | None = None
    http_worker_ipc: str | None = None
`;

/** Reads Python text that begins behind the usual imports and `BaseReq`. */
export function readText(text: string, file = "io_struct.py", also: Readonly<Record<string, string>> = {}): PythonContract {
  const bytes = (content: string) => new TextEncoder().encode(content);
  const others = Object.entries(also).map(([name, content]) => ({ file: name, bytes: bytes(content) }));
  return readPython({ file, bytes: bytes(`${imports}${text}`) }, others);
}

/** The number of lines before the text. */
export const linesBefore = imports.split("\n").length - 1;

/** A contract with a line for each struct besides `BaseReq`, without the fields of that. */
export function spell({ structs }: Pick<PythonContract, "structs">): string[] {
  const own = structs.filter(({ name }) => name !== "BaseReq");
  return own.map(({ name, layout, tag, fields }) => {
    const list = fields
      .filter(({ from }) => from !== "BaseReq")
      .map(
        ({ name: field, type, default: value }) => `${field}: ${spellType(type)}${value === undefined ? "" : ` = ${spellValue(value)}`}`,
      );
    return `${layout} ${name}${tag === undefined ? "" : tag === name ? " tagged" : ` tagged ${tag}`}(${list.join(", ")})`;
  });
}
