// Python text of one struct, and the words of the tool, for the tables of compare.test.ts.

/** A struct of one name with a body, one field or line a string. */
export function python(header: string, ...lines: string[]): string {
  return `class ${header}:\n${(lines.length === 0 ? ["pass"] : lines).map((line) => `    ${line}\n`).join("")}`;
}

export const request = (...lines: string[]) => python("ReqInput(BaseReq, kw_only=True)", ...lines);
export const reply = (...lines: string[]) => python("ReqOutput(BaseReq, kw_only=True)", ...lines);
export const map = (...lines: string[]) => python("Info(msgspec.Struct, kw_only=True)", ...lines);
export const imported = "from elsewhere import SamplingParams, MultimodalInputs\n";
export const mode = 'Mode = Literal["abort", "wait"]\n';
export const weights = "UpdateWeightsFromDistributedReqInput(BaseReq, kw_only=True)";
export const slim = "BatchTokenIDOutSlim(BaseReq, kw_only=True)";

/** A change: what it is, the text before and after, and the changes in the words of the tool. */
export type Case = readonly [what: string, before: string, after: string, ...changes: string[]];
export const requests = "breaking for requests";
export const replies = "breaking for replies";
export const both = "breaking for requests and replies";
