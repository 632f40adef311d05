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

/**
 * Ids in the form of UUIDs: of one of version 4 the first 74 random bits, then a number that rises. Two are made for
 * each call, and random ones took as long as all else of it.
 */
export function uuidRunIds(): RunIds {
  const head = randomUUID().slice(0, 24)
  let made = 0
  const next = (): string => head + (made++).toString(16).padStart(12, '0')
  return { runId: next, correlationId: next, connectionCorrelationId: randomUUID }
}
