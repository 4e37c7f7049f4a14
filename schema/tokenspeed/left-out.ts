/** Classes of the engine's source that are not on this wire. */
export const leavesOut: readonly string[] = [
  // inside the Python engine only
  ...["TokenizedEmbeddingReqInput", "BatchTokenIDOut", "BatchStrOut", "BatchEmbeddingOut", "PickleWrapper", "LoadSnapshot", "AbortReq"],
  ...["GetWeightsByNameReqInput", "GetWeightsByNameReqOutput", "ConfigureLoggingReq", "HealthCheckOutput", "GetLoadReqOutput"],
  ...["OpenSessionReqInput", "OpenSessionReqOutput", "CloseSessionReqInput", "RpcReqInput", "RpcReqOutput", "BlockReqInput"],
];
