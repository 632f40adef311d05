import { AgentCoordinator, type AgentCoordinatorDeps } from './agent-coordinator.js'
import type { EnvelopeHeader } from '../../domain/envelope/codec.js'
import { EnvelopeFactory } from '../../domain/envelope/factory.js'
import type { Channels } from './channels.js'
import { RegistryView, type RegistryViewDeps } from '../cards/registry-view.js'
import { SdkRouter, type SdkRouterDeps } from './router.js'
import type { Negotiations } from '../negotiation/negotiations.js'
import type { NodeDeps } from '../dependencies.js'
import { Reliable, type ReliableDeps } from './reliable.js'
import { SwarmCoordinator, type SwarmCoordinatorDeps } from './swarms.js'

/** The A2A layer of a running node, for programs in its process: the operations of the specification a2a-mcp-mesh. */
export interface Layer {
  /** The agents of the mesh. */
  readonly registry: RegistryView
  /** Makes envelopes with this node's ids and clock. */
  readonly envelopes: EnvelopeFactory
  /** Sends and receives them. */
  readonly router: SdkRouter
  /** Ordered channels between two agents. */
  readonly channels: Channels
  /** Proposals of tasks and their answers. */
  readonly negotiator: Negotiations
  /** Reliable messages and requests, and their records. */
  readonly reliable: Reliable
  /** Swarms launched here. */
  readonly swarms: SwarmCoordinator
  /** Agents of this program with a state each. */
  readonly agents: AgentCoordinator
  /** Headers of the messages of a thread, by time: those that passed here since the layer was created. Bounded. */
  thread(correlationId: string): readonly EnvelopeHeader[]
}

/** Dependencies of {@link createLayer}. */
export interface LayerDeps
  extends Omit<RegistryViewDeps, 'log'>,
    Omit<SdkRouterDeps, 'clock'>,
    Omit<ReliableDeps, 'clock'>,
    SwarmCoordinatorDeps {
  readonly deps: Pick<NodeDeps, 'clock' | 'ids' | 'log' | 'settings' | 'chance' | 'telemetry'>
  readonly inProcess: AgentCoordinatorDeps['inProcess']
  readonly channels: Channels
  readonly negotiations: Negotiations
}

/**
 * Creates the layer of a node. Its parts are the node's own; the layer itself has only the states of the agents
 * registered with it.
 */
export function createLayer(node: LayerDeps): Layer {
  const { clock, ids, log, telemetry, settings } = node.deps
  const { subscriptions, channels, negotiations, inProcess } = node
  const reliable = new Reliable({ ...node, clock })
  subscriptions.keepThreads()
  return {
    registry: new RegistryView({ ...node, log }),
    envelopes: new EnvelopeFactory(ids, clock),
    router: new SdkRouter({ ...node, clock }),
    channels,
    negotiator: negotiations,
    reliable,
    swarms: new SwarmCoordinator(node),
    agents: new AgentCoordinator({ inProcess, reliable, telemetry, maxStateBytes: settings.maxStateBytes }),
    thread: (correlationId) => subscriptions.thread(correlationId)
  }
}
