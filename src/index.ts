/**
 * a2a-node as a library: start a node in this process and use it, or use its rules without a node.
 *
 * ```js
 * import { loadConfig, resolveHome, startNode } from 'a2a-node'
 * const home = resolveHome({ home: './my-node' })
 * const { config } = await loadConfig({ file: home.configFile })
 * const node = await startNode({ config, home, name: 'laptop', join: null, extraAgentDirs: [] })
 * const rights = { tier: 0, sandboxId: null, scopes: ['read', 'send', 'admin'] }
 * const api = node.apiFor({ kind: 'operator', name: 'me', ...rights })
 * console.log(await api.call('peers.list', {}))
 * await node.close()
 * ```
 *
 * For a node of another process, `a2a-node/client` is enough.
 * @module
 */

// The node, its SDK and API types.
export { type RunningNode, startNode, type StartOptions } from './compose/compose.js'
export { loadConfig, type LoadedConfig, type LoadOptions } from './config/load.js'
export { type HomePaths, type PathSources, resolveHome } from './config/paths.js'
export type { Config } from './config/settings.js'
export type {
  AttachedAgent,
  AttachOptions,
  OutgoingMessage,
  InProcessReply as SendReply
} from './node/agents/in-process-agents.js'
export type { AgentChannel } from './node/sdk/channel.js'
export type { Channels, OpenChannelOptions } from './node/sdk/channels.js'
export type { RegistryView as Discovery } from './node/cards/registry-view.js'
export type {
  AgentCoordinator,
  AgentHandler,
  AgentHandlerContext,
  AgentMessage,
  RegisterOptions
} from './node/sdk/agent-coordinator.js'
export type { Layer } from './node/sdk/layer.js'
export type { EnvelopeHandler } from './node/messaging/subscriptions.js'
export type { SdkRouter as MeshRouter, RoutingResult, TierRoutingConfig } from './node/sdk/router.js'
export type { Negotiations, ProposalDraft } from './node/negotiation/negotiations.js'
export { type A2ALogEvent, type A2AMetrics, A2AObservability, type RoutingPath } from './node/observe/observability.js'
export type {
  Reliable,
  ReliableOptions,
  ReliableOutcome,
  ReliableRequest,
  ReliableRequestOptions,
  UnacknowledgedMessage
} from './node/sdk/reliable.js'
export type { CreateSwarmOptions, SwarmCoordinator } from './node/sdk/swarms.js'
export type { SwarmSession, SwarmSessionStatus, SwarmSubTask } from './node/swarms/session.js'
export type * from './ports/document-api.js'
export type * from './ports/node-api.js'
export type * from './ports/policy-api.js'
export type * from './ports/token-api.js'
export type * from './ports/swarm-api.js'
export { VERSION } from './compose/version.js'

// Errors.
export {
  ERROR_CODES,
  type ErrorBody,
  type ErrorCode,
  isErrorCode,
  NodeError,
  type NodeErrorDetails
} from './kit/errors.js'

// Dependencies of the parts of a node: clock and ids.
export { systemClock } from './adapters/system/system-clock.js'
export { randomIds } from './adapters/system/random-ids.js'
export type { Clock } from './kit/clock.js'
export type { IdSource, MeshId, NodeId } from './kit/ids.js'

// Agents and their cards.
export {
  type AgentAddress,
  type AgentCard,
  addressText,
  type CapabilityDescriptor,
  type CardBody,
  defaultCapability
} from './domain/card/card.js'
export { AgentRegistry, type RegisteredCard } from './domain/card/registry.js'
export { type CardCheck, validateCard } from './domain/card/schema.js'

// Routing rules.
export {
  decide,
  type RoutingParty,
  type RoutingQuestion,
  type RoutingRules,
  type SandboxRules,
  type Verdict
} from './domain/routing/decide.js'
export { type EffectiveParty, effectiveParty, type PartyFacts } from './domain/routing/effective.js'
export { DEFAULT_TIER_ASSIGNMENTS, DEFAULT_TIER_RULES, type TierRule } from './domain/routing/tier-rules.js'
export { type Tier, TIERS, type TierText, tierFromText, tierText } from './domain/routing/tier.js'

// Messages.
export {
  type DecodedEnvelope,
  decodeEnvelope,
  encodeEnvelope,
  type EnvelopeHeader,
  type PayloadReading
} from './domain/envelope/codec.js'
export {
  type A2AEnvelope,
  type EnvelopeMetadata,
  MESSAGE_TYPES,
  type MessageType,
  SCHEMA_VERSION
} from './domain/envelope/envelope.js'
export { EnvelopeFactory, type EnvelopeParts, type ReplyParts } from './domain/envelope/factory.js'
export { A2AEnvelopeSchema, envelopeFromJson, type EnvelopeReading, envelopeToJson } from './domain/envelope/schema.js'

export { type ThreadLimits, Threads } from './domain/envelope/threads.js'

// Channels, as a state machine without I/O, and retry delays.
export {
  type ChannelEffect,
  type ChannelInput,
  type ChannelState,
  type ChannelStatus,
  type ChannelStep,
  createChannel,
  stepChannel
} from './domain/channel/machine.js'
export { retryDelayMs } from './domain/channel/retry.js'

// Tasks, proposals and swarms, as state machines without I/O.
export {
  applyTask,
  createTask,
  foldTask,
  type TaskInput,
  type TaskParts,
  type TaskStep
} from './domain/task/machine.js'
export {
  acceptPayload,
  createProposal,
  type ProposalInput,
  proposalPayload,
  type ProposalStep,
  rejectPayload,
  stepProposal,
  type TaskAcceptPayload,
  type TaskProposal,
  type TaskProposalPayload,
  type TaskRejectPayload
} from './domain/task/negotiation.js'
export type { Task, TaskEvent, TaskState } from './domain/task/task.js'
export {
  createSwarm,
  nextTickAt,
  stepSwarm,
  type SwarmEffect,
  type SwarmInput,
  type SwarmParts,
  type SwarmState,
  swarmStatus
} from './domain/swarm/machine.js'
