import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { addressText, type AgentAddress, parseAddress } from '../../domain/card/card.js'
import { headerFault, headerOf } from '../../domain/envelope/header.js'
import type { Telemetry } from '../../ports/telemetry.js'
import { AgentChannel } from './channel.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import { draftOf, withReplies } from './router.js'
import type { Outbound } from '../messaging/outbound.js'
import type { Traffic } from '../observe/traffic.js'
import type { PeerTable } from '../peers/peer-table.js'
import { findAgent } from '../cards/select-target.js'
import type { NameDeps } from '../cards/select-target.js'

/** The most open channels. */
const MAX_CHANNELS = 4096

/** Dependencies of {@link Channels}. */
export interface ChannelsDeps extends NameDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly telemetry: Telemetry
  readonly peers: PeerTable
  readonly outbound: Outbound
  readonly subscriptions: Subscriptions
  readonly exchanges: ExchangeTable
  readonly self: NodeId
  readonly traffic: Traffic
  /** Default of the longest time of a channel without a link, in milliseconds. */
  readonly giveUpMs: number
}

/** Options of a new channel. */
export interface OpenChannelOptions {
  /** The longest time without a link before it closes, in milliseconds. Default: `network.giveUpMs`. */
  readonly giveUpMs?: number
}

interface OpenedChannel {
  readonly channel: AgentChannel
  readonly peer: NodeId
  readonly stop: Unsubscribe
}

/** The channels of this node's agents (spec a2a-mcp-mesh, ChannelManager). */
export class Channels {
  readonly #deps: ChannelsDeps
  readonly #open = new Map<string, OpenedChannel>()

  constructor(deps: ChannelsDeps) {
    this.#deps = deps
  }

  /**
   * Opens a channel from an agent of this node (id or address) to any agent (address, or a name that people may type).
   * Resolves when it is open; waits for an offline peer.
   * @throws NodeError AGENT_NOT_FOUND, AMBIGUOUS_NAME; CHANNEL_CLOSED when there was no link in time; OVERLOADED.
   */
  async openChannel(
    localAgentId: string,
    remoteAgentId: string,
    options: OpenChannelOptions = {}
  ): Promise<AgentChannel> {
    const { self, directory, peers } = this.#deps
    const local = parseAddress(localAgentId) ?? { agentId: localAgentId, nodeId: self }
    if (local.nodeId !== self || directory.card(local) === undefined)
      throw new NodeError('AGENT_NOT_FOUND', `no agent ${directory.shownAddress(local)} on this node`)
    const known = parseAddress(remoteAgentId)
    const isKnown = known !== null && directory.card(known) !== undefined
    const remote = isKnown ? known : await findAgent(this.#deps, remoteAgentId)
    if (this.#open.size >= MAX_CHANNELS)
      throw new NodeError('OVERLOADED', `at most ${MAX_CHANNELS} channels are open at once`)
    const channel = this.#add(local, remote, options)
    if (this.#isLinked(remote.nodeId)) channel.linked()
    else peers.reach(remote.nodeId).catch(() => {})
    return await opened(channel)
  }

  /** A channel that is not closed, by its id. */
  getChannel(channelId: string): AgentChannel | undefined {
    return this.#open.get(channelId)?.channel
  }

  /** Every channel that is not closed. */
  listChannels(): AgentChannel[] {
    return [...this.#open.values()].map((one) => one.channel)
  }

  /** True when a channel to an agent of the peer is open, or opening. */
  has(peer: NodeId): boolean {
    return this.#ofPeer(peer).length > 0
  }

  /** Closes every channel. */
  async closeAll(): Promise<void> {
    await Promise.all(this.listChannels().map((one) => one.close()))
  }

  /** The first link to a peer opened. */
  onOnline(peer: NodeId): void {
    for (const one of this.#ofPeer(peer)) one.linked()
  }

  /** The last link to a peer closed. */
  onOffline(peer: NodeId): void {
    for (const one of this.#ofPeer(peer)) one.unlinked()
  }

  #add(local: AgentAddress, remote: AgentAddress, { giveUpMs }: OpenChannelOptions): AgentChannel {
    const { clock, ids, telemetry, self, outbound, subscriptions, exchanges, traffic } = this.#deps
    const id = ids.next('chan')
    const channel = new AgentChannel({
      clock,
      telemetry,
      id,
      localAgent: addressText(local),
      remoteAgent: addressText(remote),
      transport: remote.nodeId === self ? 'local' : 'hyperswarm',
      giveUpMs: giveUpMs ?? this.#deps.giveUpMs,
      post: async (envelope) => void (await outbound.send(withReplies(draftOf(envelope, local, remote), exchanges))),
      isLinked: () => this.#isLinked(remote.nodeId),
      onRefused: (error, envelope) => {
        const header = headerOf(envelope)
        traffic.notSent(error, headerFault(header) === null ? header : null)
      },
      onClosed: () => this.#forget(id)
    })
    const stop = subscriptions.onReceive(local.agentId, (envelope) => channel.received(envelope))
    this.#open.set(id, { channel, peer: remote.nodeId, stop })
    return channel
  }

  #isLinked(nodeId: NodeId): boolean {
    return nodeId === this.#deps.self || this.#deps.peers.isOnline(nodeId)
  }

  #ofPeer(peer: NodeId): AgentChannel[] {
    return [...this.#open.values()].filter((one) => one.peer === peer).map((one) => one.channel)
  }

  #forget(id: string): void {
    this.#open.get(id)?.stop()
    this.#open.delete(id)
  }
}

/** Resolves when a channel is open. @throws NodeError CHANNEL_CLOSED. */
function opened(channel: AgentChannel): Promise<AgentChannel> {
  if (channel.status === 'open') return Promise.resolve(channel)
  return new Promise((resolve, reject) => {
    const stop = channel.onStatus((status) => {
      stop()
      if (status === 'open') resolve(channel)
      else reject(new NodeError('CHANNEL_CLOSED', `no link to ${channel.remoteAgentId} in time`))
    })
  })
}
