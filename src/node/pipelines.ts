import { messageOf, NodeError } from '../kit/errors.js'
import type { NodeId } from '../kit/ids.js'
import { addressText } from '../domain/card/card.js'
import { jsonBytesTaken } from '../domain/card/large-json.js'
import { AgentSelector } from './cards/select-target.js'
import { Approvals } from './policy/approvals.js'
import { ApprovalAudit, ApprovalNotices } from './policy/pending-approvals.js'
import { InProcessAgents } from './agents/in-process-agents.js'
import { CalleeRequests } from './requests/callee/record.js'
import { Channels } from './sdk/channels.js'
import { DirectAnswers } from './gateway/direct-answer.js'
import { AgentResolver } from './gateway/resolve-agent.js'
import { Inbound } from './messaging/inbound.js'
import { threadOf } from './messaging/inbound-message.js'
import type { InboundMessage } from './messaging/inbound-message.js'
import { Refusals, Verification } from './messaging/verify.js'
import { Lanes } from './reliable/lanes.js'
import { takeStream } from './sdk/router.js'
import { Negotiations, answerProposal, type ProposalAnswerDeps } from './negotiation/negotiations.js'
import { ChannelRetry } from './messaging/channel-retry.js'
import { DraftResolver, Outbound } from './messaging/outbound.js'
import type { NodeDeps } from './dependencies.js'
import { CommitQueue } from './ledger/commit-queue.js'
import { CancelQueue, StrayRuns } from './requests/caller/cancel-queue.js'
import { Dispatcher } from './requests/caller/peer-queue.js'
import { makeRequest } from './requests/caller/record.js'
import { requestFactory, Requests } from './requests/caller/requests.js'
import { sizeOf } from '../kit/size.js'
import { type JsonBytesTaken, SwarmStore } from './swarms/store.js'
import { createSwarmTable } from './swarms/compose.js'
import type { SwarmTable } from './swarms/swarm-table.js'
import type { SwarmWord } from './swarms/consensus/participant.js'
import { EligibleAgents, SwarmDocuments } from './documents/swarm-documents.js'
import { VoteStore } from './swarms/consensus/vote-store.js'
import type { Services } from './services.js'
import { Executor } from './requests/callee/executor.js'
import { Admissions, Heartbeats, InFlight } from './requests/callee/in-flight.js'
import { CalleeQuestions } from './requests/callee/questions.js'
import { answerSender } from './requests/caller/questions.js'
import { Replies } from './requests/callee/replies.js'
import { Runner } from './requests/callee/runner.js'
import type { LedgerChange } from '../ports/ledger.js'

/** Payloads of notifications over this size are left out of the events, in bytes. */
const EVENT_PAYLOAD_BYTES = 4096

/** The paths of messages and work through the node. */
export interface Pipelines {
  readonly inbound: Inbound
  readonly lanes: Lanes
  readonly outbound: Outbound
  readonly selector: AgentSelector
  readonly requests: Requests
  readonly executor: Executor
  readonly direct: DirectAnswers
  readonly resolver: AgentResolver
  readonly swarms: SwarmTable
  readonly inProcess: InProcessAgents
  readonly approvals: Approvals
  readonly swarmDocuments: SwarmDocuments
  readonly channels: Channels
  readonly negotiations: Negotiations
}

type Changes = readonly LedgerChange[]
type Common = Omit<NodeDeps, keyof Services> & Services

/** Builds the pipelines of a node. They refer to each other, and all exist before the first message. */
export function createPipelines(deps: NodeDeps, tables: Services): Pipelines {
  const common = { ...deps, ...tables }
  const later = (): Pipelines => pipelines
  const callee = new CalleeRequests({
    ...common,
    isInPerson: ({ agentId }) => inProcess.isInPerson(agentId),
    areVoters: (swarm, nodes) => swarms.participants.areVoters(swarm, nodes)
  })
  const lanes = createLanes(common, later)
  const inbound = createInbox(common, callee, later)
  const outbound = createOutbound(common, lanes, inbound)
  const inProcess = new InProcessAgents({ ...common, outbound })
  const requests = createRequests(common, { outbound, lanes }, later)
  const swarmStore = new SwarmStore(common.ledger, common.hash, jsonBytesTakenIn(common))
  const swarms = createSwarms(common, { outbound, requests, lanes, swarmStore })
  const selector = new AgentSelector({ ...common, outbound })
  const negotiations = new Negotiations({ ...common, selector, outbound })
  const executor = createExecutor(common, { outbound, callee, lanes }, later)
  const pipelines: Pipelines = {
    channels: new Channels({ ...common, outbound, giveUpMs: deps.settings.channelGiveUpMs }),
    inbound,
    lanes,
    outbound,
    selector,
    requests,
    executor,
    direct: new DirectAnswers({ ...common, inProcess, executor }),
    resolver: new AgentResolver({ ...common, selector }),
    swarms,
    swarmDocuments: createSwarmDocuments(
      common,
      { outbound, swarms, executor },
      { swarmStore, streams: deps.documents }
    ),
    inProcess,
    approvals: createApprovals(common, { inbound, executor, requests, swarms }),
    negotiations
  }
  return pipelines
}

function createApprovals(
  common: Common,
  { inbound, executor, requests, swarms }: Pick<Pipelines, 'inbound' | 'executor' | 'requests' | 'swarms'>
): Approvals {
  const notices = new ApprovalNotices({ ...common, requests, swarms })
  const record = new ApprovalAudit(common)
  return new Approvals({ ...common, inbound, executor, record, notices, limits: common.settings })
}

function createSwarmDocuments(
  common: Common,
  { outbound, swarms, executor }: Pick<Pipelines, 'outbound' | 'swarms' | 'executor'>,
  own: { readonly swarmStore: SwarmStore; readonly streams: NodeDeps['documents'] }
): SwarmDocuments {
  const eligible = new EligibleAgents({ ...common, outbound })
  return new SwarmDocuments({ ...common, ...own, swarms, executor, eligible })
}

function createExecutor(
  common: Common,
  { outbound, callee, lanes }: Pick<Pipelines, 'outbound' | 'lanes'> & { readonly callee: CalleeRequests },
  later: () => Pipelines
): Executor {
  const { settings, self } = common
  const inFlight = new InFlight()
  const shared = {
    ...common,
    outbound,
    callee,
    inFlight,
    limits: settings,
    commit: (changes: Changes) => lanes.commit(changes)
  }
  const replies = new Replies({ ...shared, answerTtlMs: settings.defaultTtlMs })
  const heartbeats = new Heartbeats({
    ...shared,
    inPerson: () => later().inProcess.inPerson(),
    onHeartbeatHere: ({ requests: keys, waiting }) => {
      later().requests.reports.onHeartbeat(self, keys, waiting)
      later().swarms.onHeartbeat(self, keys)
    }
  })
  const admissions = new Admissions({
    ...shared,
    isPast: (peer, swarm, epoch) => later().swarms.participants.isPast(peer, swarm, epoch)
  })
  const questions = new CalleeQuestions({ ...shared, replies })
  const runner = new Runner({ ...shared, replies, questions })
  return new Executor({ ...shared, replies, heartbeats, admissions, runner, questions })
}

function createOutbound(common: Common, lanes: Lanes, inbound: Inbound): Outbound {
  const { clock, directory, events, nextHop, peers, subscriptions, telemetry } = common
  return new Outbound({
    ...common,
    lanes,
    resolver: new DraftResolver(common),
    delivery: new ChannelRetry({
      clock,
      budget: peers.budget,
      reach: (peer) => nextHop.reach(peer),
      onFailure: (peer, { code, message }) => {
        telemetry.count('errors', 'delivery')
        events.add('delivery-failed', message, { code, peer: directory.ref(peer).name })
      }
    }),
    onSent: (envelope) => subscriptions.sent(envelope),
    deliverHere: (envelope) => inbound.receiveHere(envelope)
  })
}

function createRequests(
  common: Common,
  { outbound, lanes }: Pick<Pipelines, 'outbound' | 'lanes'>,
  later: () => Pipelines
): Requests {
  const { self, settings } = common
  const shared = { ...common, outbound, lanes, limits: settings }
  const cancellations = new CancelQueue({
    ...common,
    cancelHere: (key) => [later().approvals, later().executor].forEach((part) => part.onCancel(self, key))
  })
  const sendAnswer = answerSender({ ...common, answerHere: (body) => later().executor.onAnswer(self, body) })
  const strays = new StrayRuns({ ...shared, cancel: (peer, key) => cancellations.cancel(peer, key) })
  const ends = new CommitQueue({ ...common, commit: (changes) => lanes.commit(changes) })
  const parts = { ...shared, cancellations, sendAnswer, strays, ends, dispatcher: new Dispatcher(common) }
  return new Requests({ ...parts, open: requestFactory(parts), make: (asking) => makeRequest(shared, asking) })
}

function createLanes(common: Common, later: () => Pipelines): Lanes {
  const { peers, telemetry } = common
  return new Lanes({
    ...common,
    isOnline: (peer) => peers.isOnline(peer),
    onAcknowledged: (requestId) => later().requests.onAcknowledged(requestId),
    admit: (message) => later().inbound.admit(message),
    onGivenUp: (messages) => telemetry.count('errors', 'delivery', messages.length),
    onUndelivered: (peer, requestIds) => later().requests.onUndelivered(peer, requestIds)
  })
}

type SwarmTableParts = Pick<Pipelines, 'outbound' | 'requests' | 'lanes'> & { readonly swarmStore: SwarmStore }

function createSwarms(common: Common, { outbound, requests, lanes, swarmStore }: SwarmTableParts): SwarmTable {
  const { leaseMs, defaultTtlMs, swarmDeadlineMs: deadlineMs } = common.settings
  return createSwarmTable({
    ...common,
    outbound,
    requests,
    swarmStore,
    swarmVotes: new VoteStore(common.ledger, common.hash),
    ledgerName: () => lanes.ledgerName,
    tell: (to, message) => tellPeer(common, to, message),
    commit: (changes) => lanes.commit(changes),
    limits: { leaseMs, deadlineMs, defaultTtlMs }
  })
}

function jsonBytesTakenIn({ registry, settings }: Common): JsonBytesTaken {
  const of = (node: NodeId): number[] => registry.ofNode(node).map(({ protocols }) => jsonBytesTaken(protocols))
  return { own: settings.maxPayloadBytes, by: (node) => Math.max(jsonBytesTaken(), ...of(node)) }
}

/** A message that fails to arrive is sent again when it matters. */
function tellPeer({ peers, telemetry }: Common, to: NodeId, message: SwarmWord): void {
  if (!peers.isOnline(to)) return
  try {
    peers.send(to, { kind: 'control', ...message })
  } catch (error) {
    telemetry.log('debug', 'a word to a participant could not be sent', { peer: to, reason: messageOf(error) })
  }
}

function createInbox(common: Common, callee: CalleeRequests, later: () => Pipelines): Inbound {
  const { settings, subscriptions } = common
  const refusals = new Refusals({ ...common, refuse: (thread, error) => later().executor.refuse(thread, error) })
  return new Inbound({
    ...common,
    ttlMs: settings.defaultTtlMs,
    refusals,
    verification: new Verification({ ...common, refusals }),
    records: {
      commit: (changes) => later().lanes.commit(changes),
      record: (incoming, envelope) => callee.record(incoming, envelope),
      onReply: (incoming) => later().requests.recordReply(incoming)
    },
    receivers: {
      onLetIn: ({ recipient, header, payload }) => subscriptions.received(recipient.agentId, header, payload),
      onRequest: (incoming) => later().inProcess.onRequest(incoming) || later().executor.onRequest(incoming),
      onNotification: (incoming) =>
        later().inProcess.onNotification(incoming) ||
        noteNotification(common, incoming, later().executor.onNotification(incoming)),
      onProposal: (incoming) => takeProposal({ ...common, ...later() }, incoming),
      onStream: (incoming) => takeStream(common, incoming)
    },
    hold: (awaiting) => later().approvals.hold(awaiting)
  })
}

function takeProposal(
  deps: ProposalAnswerDeps & Pick<Pipelines, 'negotiations' | 'executor'>,
  incoming: InboundMessage
): void {
  const taken = deps.negotiations.onProposal(incoming)
  if (taken === 'nobody') answerProposal(deps, incoming)
  if (taken === 'full')
    deps.executor.refuse(threadOf(incoming), new NodeError('OVERLOADED', 'too many proposals wait here').toBody())
}

function noteNotification(
  { events, directory }: Services,
  { sender, recipient, payload }: InboundMessage,
  ran: boolean
): void {
  const bytes = sizeOf(payload)
  events.add('notification', `a notification came for ${recipient.agentId}`, {
    from: directory.shownAddress(sender),
    to: addressText(recipient),
    ran,
    ...(bytes > EVENT_PAYLOAD_BYTES ? { bytes } : { payload })
  })
}
