import type { Assert } from 'brittle'
import fc from 'fast-check'
import { arbitraries } from '../../src/testing.js'

/** The package's own generators, made with the fast-check of these tests. */
export const {
  arbA2AEnvelope,
  arbAddress,
  arbAgentCard,
  arbCapabilityDescriptor,
  arbCRDTSyncMessage,
  arbMCPToolDefinition,
  arbSandboxConfig,
  arbTaskProposal,
  arbTierPair
} = arbitraries(fc)

/** Runs a property; a failure throws with the seed and the smallest counterexample. */
export function holds<Ts>(t: Assert, property: fc.IProperty<Ts>, numRuns = 200): void {
  fc.assert(property, { numRuns })
  t.pass(`held in ${numRuns} runs`)
}
