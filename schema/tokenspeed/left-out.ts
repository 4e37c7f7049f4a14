/** Classes of `io_struct.py` that are not on this wire, or not described yet. */
export const leavesOut: readonly string[] = [
  // requests for tokens and their results: the data plane, not described yet
  ...["TokenizedGenerateReqInput", "SessionParams", "BatchTokenIDOutSlim"],
  // inside the Python engine only
  ...["TokenizedEmbeddingReqInput", "BatchTokenIDOut", "BatchStrOut", "BatchEmbeddingOut", "PickleWrapper", "LoadSnapshot", "AbortReq"],
  ...["GetWeightsByNameReqInput", "GetWeightsByNameReqOutput", "ConfigureLoggingReq", "HealthCheckOutput", "GetLoadReqOutput"],
  ...["OpenSessionReqInput", "OpenSessionReqOutput", "CloseSessionReqInput", "RpcReqInput", "RpcReqOutput", "BlockReqInput"],
];
