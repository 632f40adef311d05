import type { Config } from '../config/settings.js'
import { DEFAULT_TIER_RULES } from '../domain/routing/tier-rules.js'
import type { NodeSettings } from '../node/dependencies.js'

/** Converts the config to the settings of the node. */
export function settingsOf({ node, network, tasks, ledger, swarm, routing, policy, tools, a2a }: Config): NodeSettings {
  return {
    requestTimeoutMs: tasks.requestTimeoutMs,
    defaultTtlMs: ledger.defaultTtlMs,
    ledgerMaxBytes: ledger.maxMib * 1024 * 1024,
    maxInFlight: tasks.maxInFlight,
    maxInFlightPerPeer: tasks.maxInFlightPerPeer,
    leaseMs: swarm.leaseMs,
    heartbeatMs: swarm.heartbeatMs,
    approvalTimeoutMs: policy.approvalTimeoutMs,
    swarmDeadlineMs: swarm.deadlineMs,
    channelGiveUpMs: network.giveUpMs,
    forward: network.forward,
    maxStateBytes: tools.maxStateBytes,
    maxPayloadBytes: tools.maxPayloadBytes,
    labels: [...new Set(node.labels)],
    provider: a2a.provider,
    defaultAgent: a2a.default,
    rules: {
      tierRules: DEFAULT_TIER_RULES,
      sandbox: { enforced: true, crossSandboxAllowList: [] },
      replies: routing.replies
    }
  }
}
