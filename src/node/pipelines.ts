import { messageOf, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { Approvals } from './policy/approvals.js'
import { Attached } from './agents/in-process-agents.js'
import { CalleeRequests } from './requests/callee/record.js'
import { Channels } from './sdk/channels.js'
import { Direct } from './gateway/direct-answer.js'
import { Inbox } from './messaging/inbound.js'
import { threadOf } from './messaging/inbound-message.js'
import type { Incoming } from './messaging/inbound-message.js'
import { Lanes } from './reliable/lanes.js'
import { takeStream } from './sdk/router.js'
import { Negotiations } from './negotiation/negotiations.js'
import { answerProposal } from './negotiation/answer-proposal.js'
import type { OffersParts } from './negotiation/answer-proposal.js'
import { Outbox } from './messaging/outbound.js'
import type { NodeParts } from './dependencies.js'
import { Requests } from './requests/caller/requests.js'
import { sizeOf } from '../kit/size.js'
import { SwarmStore } from './swarms/store.js'
import { Swarms } from './swarms/swarm-table.js'
import type { SwarmWord } from './swarms/consensus/participant.js'
import { SwarmDocuments } from './documents/swarm-documents.js'
import { VoteStore } from './swarms/consensus/vote-store.js'
import type { Tables } from './services.js'
import { Work } from './requests/callee/executor.js'

/** Payloads of notifications over this size are left out of the events, in bytes. */
const EVENT_PAYLOAD_BYTES = 4096

/** What messages and work pass through. */
export interface Pipelines {
  readonly inbox: Inbox
  readonly lanes: Lanes
  readonly outbox: Outbox
  readonly requests: Requests
  readonly work: Work
  readonly direct: Direct
  readonly swarms: Swarms
  readonly attached: Attached
  readonly approvals: Approvals
  readonly swarmDocuments: SwarmDocuments
  readonly channels: Channels
  readonly negotiations: Negotiations
}

type Common = Omit<NodeParts, keyof Tables> & Tables

/** Builds the pipelines of a node. What they call of each other is there when a message comes. */
export function createPipelines(parts: NodeParts, tables: Tables): Pipelines {
  const common = { ...parts, ...tables }
  const { settings, self, listeners } = common
  const later = (): Pipelines => pipelines
  const callee = new CalleeRequests({ ...common, isInPerson: ({ agentId }) => attached.isInPerson(agentId) })
  const lanes = createLanes(common, later)
  const inbox = createInbox(common, callee, later)
  const outbox = new Outbox({
    ...common,
    lanes,
    onSent: (envelope) => listeners.sent(envelope),
    deliverHere: (envelope) => inbox.receiveHere(envelope)
  })
  const attached = new Attached({ ...common, outbox })
  const cancelHere = (key: string): void => [approvals, work].forEach((part) => part.onCancel(self, key))
  const requests = new Requests({ ...common, outbox, lanes, limits: settings, cancelHere })
  const swarms = createSwarms(common, { outbox, requests, lanes })
  const negotiations = new Negotiations({ ...common, outbox })
  const channels = new Channels({ ...common, outbox, giveUpMs: settings.channelGiveUpMs })
  const work = createWork(common, { outbox, callee, lanes }, later)
  const approvals: Approvals = new Approvals({ ...common, inbox, work, requests, swarms, limits: settings })
  const swarmDocuments = new SwarmDocuments({ ...common, outbox, streams: parts.documents, swarms, work })
  const direct = new Direct({ ...common, attached, work })
  const pipelines: Pipelines = {
    inbox,
    lanes,
    outbox,
    requests,
    work,
    direct,
    swarms,
    swarmDocuments,
    attached,
    approvals,
    channels,
    negotiations
  }
  return pipelines
}

function createWork(
  common: Common,
  { outbox, callee, lanes }: Pick<Pipelines, 'outbox' | 'lanes'> & { readonly callee: CalleeRequests },
  later: () => Pipelines
): Work {
  const { settings, self } = common
  return new Work({
    ...common,
    outbox,
    callee,
    commit: (changes) => lanes.commit(changes),
    limits: { ...settings, answerTtlMs: settings.defaultTtlMs },
    inPerson: () => later().attached.inPerson(),
    isPast: (peer, swarm, epoch) => later().swarms.participants.isPast(peer, swarm, epoch),
    areVoters: (swarm, nodes) => later().swarms.participants.areVoters(swarm, nodes),
    onHeartbeatHere: ({ requests: keys, waiting }) => {
      later().requests.onHeartbeat(self, keys, waiting)
      later().swarms.onHeartbeat(self, keys)
    }
  })
}

function createLanes(common: Common, later: () => Pipelines): Lanes {
  const { peers, telemetry } = common
  return new Lanes({
    ...common,
    isOnline: (peer) => peers.isOnline(peer),
    onAcknowledged: (requestId) => later().requests.onAcknowledged(requestId),
    admit: (message) => later().inbox.admit(message),
    onGivenUp: (messages) => telemetry.count('errors', 'delivery', messages.length),
    onUndelivered: (peer, requestIds) => later().requests.onUndelivered(peer, requestIds)
  })
}

function createSwarms(common: Common, { outbox, requests, lanes }: Pick<Pipelines, 'outbox' | 'requests' | 'lanes'>): Swarms {
  const { leaseMs, defaultTtlMs, swarmDeadlineMs: deadlineMs } = common.settings
  return new Swarms({
    ...common,
    outbox,
    requests,
    swarmStore: new SwarmStore(common.ledger, common.hash),
    swarmVotes: new VoteStore(common.ledger, common.hash),
    ledgerName: () => lanes.ledgerName,
    tell: (to, message) => tellPeer(common, to, message),
    commit: (changes) => lanes.commit(changes),
    limits: { leaseMs, deadlineMs, defaultTtlMs }
  })
}

/** What does not get there is said again when it matters. */
function tellPeer({ peers, telemetry }: Common, to: NodeId, message: SwarmWord): void {
  if (!peers.isOnline(to)) return
  try {
    peers.send(to, { kind: 'control', ...message })
  } catch (error) {
    telemetry.log('debug', 'a word to a participant could not be sent', { peer: to, reason: messageOf(error) })
  }
}

function createInbox(common: Common, callee: CalleeRequests, later: () => Pipelines): Inbox {
  const { listeners, settings } = common
  return new Inbox({
    ...common,
    ttlMs: settings.defaultTtlMs,
    commit: (changes) => later().lanes.commit(changes),
    record: (incoming, envelope) => callee.record(incoming, envelope),
    onReply: (incoming) => later().requests.recordReply(incoming),
    onLetIn: ({ recipient, header, payload }) => listeners.received(recipient.agentId, header, payload),
    onRequest: (incoming) => later().attached.onRequest(incoming) || later().work.onRequest(incoming),
    onNotification: (incoming) =>
      later().attached.onNotification(incoming) || noteNotification(common, incoming, later().work.onNotification(incoming)),
    onProposal: (incoming) => takeProposal({ ...common, ...later() }, incoming),
    onStream: (incoming) => takeStream(common, incoming),
    refuse: (thread, error) => later().work.refuse(thread, error),
    hold: (awaiting) => later().approvals.hold(awaiting)
  })
}

function takeProposal(parts: OffersParts & Pick<Pipelines, 'negotiations' | 'work'>, incoming: Incoming): void {
  const taken = parts.negotiations.onProposal(incoming)
  if (taken === 'nobody') answerProposal(parts, incoming)
  if (taken === 'full') parts.work.refuse(threadOf(incoming), new NodeError('OVERLOADED', 'too many proposals wait here').toBody())
}

function noteNotification({ events, directory }: Tables, { sender, recipient, payload }: Incoming, ran: boolean): void {
  const bytes = sizeOf(payload)
  events.add('notification', `a notification came for ${recipient.agentId}`, {
    from: directory.shownAddress(sender),
    to: addressText(recipient),
    ran,
    ...(bytes > EVENT_PAYLOAD_BYTES ? { bytes } : { payload })
  })
}
