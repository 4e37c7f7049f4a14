/** The device broke: every rank of the group ends, each with ENGINE_CORE_DEAD. */
export class EngineFault extends Error {
  override readonly name = "EngineFault";
}

/** The engine vanishes where it stands, without ENGINE_CORE_DEAD. */
export class EngineCrash extends Error {
  override readonly name = "EngineCrash";
}
