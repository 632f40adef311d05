import { z } from 'zod'
import { ENVELOPE_LIMITS } from '../envelope/limits.js'

/** Agents that one vector clock names. */
export const MAX_CLOCK_ENTRIES = 1024

const AgentName = z.string().min(1).max(ENVELOPE_LIMITS.maxNameLength)

/** Shape of a CRDTSyncMessage (spec a2a-mcp-mesh): the payload of a `stream-data` envelope that carries an update. */
export const CRDTSyncMessageSchema = z
  .object({
    sourceAgentId: AgentName,
    vectorClock: z.record(AgentName, z.int().nonnegative()),
    payload: z.unknown(),
    timestamp: z.number().nonnegative()
  })
  .refine(
    ({ vectorClock }) => Object.keys(vectorClock).length <= MAX_CLOCK_ENTRIES,
    'a vector clock with too many agents'
  )
  .refine(
    ({ vectorClock, sourceAgentId }) => (vectorClock[sourceAgentId] ?? 0) >= 1,
    'a vector clock without its source'
  )

/**
 * One update of a document, with how many updates of each agent its source knows: never empty, and its own count at
 * least 1.
 */
export type CRDTSyncMessage = Readonly<z.infer<typeof CRDTSyncMessageSchema>>

/** Reads the payload of a `stream-data` envelope. Null when it is no CRDTSyncMessage. Never throws. */
export function readSyncMessage(payload: unknown): CRDTSyncMessage | null {
  const checked = CRDTSyncMessageSchema.safeParse(payload)
  return checked.success ? checked.data : null
}
