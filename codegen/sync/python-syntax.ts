import { parser } from "@lezer/python";
import type { Source } from "./source.ts";

/** A node of the grammar's tree. */
export type SyntaxNode = ReturnType<typeof parser.parse>["topNode"];

const punctuation = /^([^A-Za-z⚠].*|ArithOp|BitOp|CompareOp|LogicOp|AssignOp|Comment|class|def|from|import|as|type|At)$/;

/** The children of a node without comments, words and signs of the language. */
export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return allChildrenOf(node).filter(({ name }) => !punctuation.test(name));
}

/** All children of a node. */
export function allChildrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

/** The statements of a file or of a body; those that share a line one by one. */
export function statementsOf(node: SyntaxNode): SyntaxNode[] {
  return childrenOf(node).flatMap((child) => (child.name === "StatementGroup" ? childrenOf(child) : [child]));
}

/** The syntax of a whole file; throws where it is not Python. */
export function parsePython(source: Source): SyntaxNode {
  const tree = parser.parse(source.text);
  tree.iterate({
    enter(reference) {
      const { node } = reference;
      if (reference.type.isError) throw source.errorAt(faultOf(source, node), "this is not Python");
      if (node.name === "Body" || node.name === "Script") checkIndentation(source, node);
      else if (node.name === "String") checkEnd(source, node);
    },
  });
  return tree.topNode;
}

/** What is missing at the end of a line is reported there, not at the next word. */
function faultOf(source: Source, node: SyntaxNode): number {
  if (node.from !== node.to) return node.from;
  return Math.max(source.text.slice(0, node.from).trimEnd().length, 1) - 1;
}

/** The grammar takes any indentation that is not deeper for the end of a block; Python wants one that it has seen. */
function checkIndentation(source: Source, block: SyntaxNode): void {
  const [first, ...others] = childrenOf(block);
  if (first === undefined) return;
  const expected = block.name === "Script" ? "" : source.before(first);
  // A body on the line of its header.
  if (expected.trim() !== "") return;
  for (const node of block.name === "Script" ? [first, ...others] : others) {
    const found = source.before(node);
    if (found.trim() === "" && found !== expected) {
      const tabs = found.includes("\t") || expected.includes("\t") ? "tabs and spaces are mixed" : "it is not that of the lines before";
      throw source.errorAt(node.from, `the indentation of this line is not Python: ${tabs}`);
    }
  }
}

/** The grammar ends a string at the end of a line; Python does not. */
function checkEnd(source: Source, node: SyntaxNode): void {
  const text = source.of(node);
  const quote = /^[A-Za-z]*("""|'''|"|')/.exec(text);
  const start = quote?.[0].length ?? 0;
  if (quote === null || text.length < start + (quote[1]?.length ?? 0) || !text.endsWith(quote[1] ?? "")) {
    throw source.errorAt(node.from, "a string without an end");
  }
}
