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
