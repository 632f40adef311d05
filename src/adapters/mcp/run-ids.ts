import { randomUUID } from 'node:crypto'

/** Makes the ids of calls and connections (spec mcp-runtime, IdGenerator). Tests pass one that counts. */
export interface RunIds {
  /** Of one call of a tool. */
  runId(): string
  /** Of a call whose client named none. */
  correlationId(): string
  /** Of a connection, made when it opens. */
  connectionCorrelationId(): string
}

/** UUIDs of version 4. */
export function uuidRunIds(): RunIds {
  return { runId: randomUUID, correlationId: randomUUID, connectionCorrelationId: randomUUID }
}
