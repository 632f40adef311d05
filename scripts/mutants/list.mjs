// One-line faults in rules that are built, and the test that must notice each.

import { CARE_MUTANTS } from './care.mjs'
import { CUT_RUN_MUTANTS } from './cut-runs.mjs'
import { DOCUMENT_MUTANTS } from './documents.mjs'
import { HOPS_MUTANTS } from './hops.mjs'
import { NETWORK_MUTANTS } from './network.mjs'
import { OAUTH_MUTANTS } from './oauth.mjs'
import { HOSTILE_MUTANTS } from './hostile.mjs'
import { MEMBER_CALL_MUTANTS } from './member-calls.mjs'
import { OUTCOME_MUTANTS } from './outcomes.mjs'
import { PLACES_MUTANTS } from './places.mjs'
import { POLICY_MUTANTS } from './policy.mjs'
import { PUSH_MUTANTS } from './push.mjs'
import { RECORD_MUTANTS } from './records.mjs'
import { RELIABLE_MUTANTS } from './reliable.mjs'
import { SWARM_MUTANTS } from './swarms.mjs'
import { TAKEOVER_MUTANTS } from './takeover.mjs'
import { TRUST_MUTANTS } from './trust.mjs'

/** A property of the specification by its number. */
const property = (number) => `Feature: a2a-mcp-protocols, Property ${number}:`

/**
 * @typedef {object} Mutant
 * @property {string} name what the fault does
 * @property {string} file the source it is made in
 * @property {string} find text that stands there exactly once
 * @property {string} put what takes its place
 * @property {string} test the test file that is run, below test/
 * @property {string} title beginning of the title that must fail
 */

/** @type {readonly Mutant[]} */
export const MUTANTS = [
  {
    name: 'a registered card is stored under another revision',
    file: 'src/domain/card/registry.ts',
    find: 'known.revision + 1',
    put: 'known.revision + 2',
    test: 'domain/card/registry',
    title: property(3)
  },
  {
    name: 'a card is not found by its capabilities',
    file: 'src/domain/card/registry.ts',
    find: 'card.capabilities.map((one) => one.id)',
    put: 'card.capabilities.slice(1).map((one) => one.id)',
    test: 'domain/card/registry',
    title: property(1)
  },
  {
    name: 'incomplete cards are registered',
    file: 'src/domain/card/registry.ts',
    find: 'if (result.ok) return result.card',
    put: 'if (result.ok || isRecord(card)) return card as CardBody',
    test: 'domain/card/registry',
    title: property(2)
  },
  {
    name: 'reading a registry back makes every card local',
    file: 'src/domain/card/registry.ts',
    find: '{ ...checked(one.card), origin, lastSeenAt, ',
    put: "{ ...checked(one.card), origin: 'local', lastSeenAt, ",
    test: 'domain/card/registry',
    title: property(4)
  },
  {
    name: 'a merged card loses its description',
    file: 'src/domain/card/registry.ts',
    find: "{ ...cardBodyOf(card), origin: 'remote', lastSeenAt: at, ",
    put: "{ ...cardBodyOf(card), description: '', origin: 'remote', lastSeenAt: at, ",
    test: 'domain/card/registry',
    title: property(5)
  },
  {
    name: 'a sandboxed agent finds every card',
    file: 'src/domain/card/registry.ts',
    find: 'sandboxId === null || card.sandboxId === sandboxId ||',
    put: 'sandboxId !== undefined || card.sandboxId === sandboxId ||',
    test: 'domain/card/registry',
    title: property(30)
  },
  {
    name: 'all envelopes have one id',
    file: 'src/domain/envelope/factory.ts',
    find: "const id = this.#ids.next('msg')",
    put: "const id = 'msg'",
    test: 'domain/envelope/factory',
    title: property(6)
  },
  {
    name: 'the schema version is lost in JSON',
    file: 'src/domain/envelope/schema.ts',
    find: '{ ...shape.data, payload: payload.value }',
    put: '{ ...shape.data, schemaVersion: shape.data.schemaVersion + 1, payload: payload.value }',
    test: 'domain/envelope/schema',
    title: property(7)
  },
  {
    name: 'threads are in the order of arrival',
    file: 'src/domain/envelope/threads.ts',
    find: 'while (at > 0 &&',
    put: 'while (at < 0 &&',
    test: 'domain/envelope/threads',
    title: property(8)
  },
  {
    name: 'a message of an unknown type is taken for a request',
    file: 'src/domain/envelope/header.ts',
    find: 'const type = MESSAGE_TYPES[c.uint8.decode(state)]',
    put: "const type = MESSAGE_TYPES[c.uint8.decode(state)] ?? 'request'",
    test: 'domain/envelope/codec',
    title: property(9)
  },
  {
    name: 'a closed channel opens again',
    file: 'src/domain/channel/machine.ts',
    find: "if (state.status === 'closed') return",
    put: "if (state.status === 'closed' && input.type !== 'acknowledged') return",
    test: 'domain/channel/machine',
    title: property(10)
  },
  {
    name: 'chunks are joined backwards',
    file: 'src/domain/channel/chunks.ts',
    find: 'whole.set(link.bytes, end)',
    put: 'whole.set(link.bytes, size - end - link.bytes.byteLength)',
    test: 'domain/channel/frames',
    title: property(11)
  },
  {
    name: 'decide() always allows',
    file: 'src/domain/routing/decide.ts',
    find: 'if (!rule.allowedTargetTiers.includes(to)) {',
    put: 'if (rule.allowedTargetTiers.length === 0) {',
    test: 'domain/routing/decide',
    title: property(16)
  },
  {
    name: 'nobody is asked for a justification',
    file: 'src/domain/routing/decide.ts',
    find: 'if (fault === null) return { allowed: true',
    put: 'if (fault !== undefined) return { allowed: true',
    test: 'domain/routing/decide',
    title: property(16)
  },
  {
    name: 'sandboxes are ignored',
    file: 'src/domain/routing/decide.ts',
    find: 'if (own === null || own === target.sandboxId',
    put: 'if (own !== CONFLICT_SANDBOX || own === target.sandboxId',
    test: 'domain/routing/decide',
    title: property(29)
  },
  {
    name: 'replies pass without an exchange',
    file: 'src/domain/routing/decide.ts',
    find: 'if (!question.isReply) return NO_EXCHANGE',
    put: '',
    test: 'domain/routing/decide',
    title: 'a reply passes along an open exchange with any tiers, and never without one'
  },
  {
    name: 'a weak card on a strong node is strong',
    file: 'src/domain/routing/effective.ts',
    find: 'weakest(certificate.maxTier, card.tier)',
    put: 'certificate.maxTier',
    test: 'domain/routing/effective',
    title: 'a party is as weak as the weakest of certificate, card and hops'
  },
  {
    name: 'signatures are not checked',
    file: 'src/domain/membership/signing.ts',
    find: 'return verify(bytes, signature, keyFromText(by))',
    put: 'return verify !== undefined && keyFromText(by).byteLength === 32',
    test: 'domain/membership/fold/fold',
    title: 'nothing counts before the founding, from strangers, for another mesh, or with a wrong signature'
  },
  {
    name: 'an invite may be used without end',
    file: 'src/domain/membership/grant.ts',
    find: 'invite.admitted.length >= invite.terms.uses',
    put: 'invite.admitted.length > 1000 + invite.terms.uses',
    test: 'domain/membership/fold/fold',
    title: 'the first uses of an invite are admitted, later ones find their refusal'
  },
  {
    name: 'what a revoked author writes counts',
    file: 'src/domain/membership/fold/fold.ts',
    find: "if (author.revoked !== null) return skip('its author is revoked')",
    put: '',
    test: 'domain/membership/fold/fold',
    title: 'a revoked node is out for good: nothing of it counts, and its invites end with it'
  },
  {
    name: 'a card of another node is taken',
    file: 'src/domain/card/schema.ts',
    find: "if (by !== certificate.nodeKey) return 'signed by another node'",
    put: '',
    test: 'domain/card/schema',
    title: 'a signed card is taken from its node only, as it was signed'
  },
  {
    name: 'a proposal is accepted after its deadline',
    file: 'src/domain/task/negotiation.ts',
    find: 'now - proposal.createdAt >= proposal.deadlineMs',
    put: 'now - proposal.createdAt >= 2 * proposal.deadlineMs',
    test: 'domain/task/negotiation',
    title: 'a proposal is answered once: the first of acceptance, rejection and deadline stands'
  },
  {
    name: 'a proposal does not tell its complexity',
    file: 'src/domain/task/negotiation.ts',
    find: 'requiredCapabilities: [...requiredCapabilities], estimatedComplexity, deadlineMs }',
    put: "requiredCapabilities: [...requiredCapabilities], estimatedComplexity: 'simple', deadlineMs }",
    test: 'domain/task/negotiation',
    title: property(23)
  },
  {
    name: 'an answer opens a thread of its own',
    file: 'src/domain/envelope/factory.ts',
    find: 'correlationId: threadOf(request),',
    put: 'correlationId: this.#ids.next("thread"),',
    test: 'domain/task/negotiation',
    title: property(24)
  },
  {
    name: 'results of a lease that has ended are accepted',
    file: 'src/domain/swarm/leases.ts',
    find: 'item.attempt !== ',
    put: 'item.attempt < ',
    test: 'domain/swarm/machine',
    title: 'only the live attempt of the agent that holds it brings a result'
  },
  {
    name: 'leases without heartbeats stay',
    file: 'src/domain/swarm/machine.ts',
    find: 'now - heartbeatAt < patience(state, item)',
    put: 'now - heartbeatAt < 1000 * patience(state, item)',
    test: 'domain/swarm/machine',
    title: 'a lease without a heartbeat goes back, one with heartbeats stays'
  },
  {
    name: 'an agent of a node that was put out is as strong as its card',
    file: 'src/node/cards/directory.ts',
    find: 'if (certificate === null) return null',
    put: 'if (certificate === null) return { address: card.address, tier: card.tier, sandboxId: null }',
    test: 'node/cards/directory',
    title: 'the agent that a message names is the one at its address, for any later changes of it and its node'
  },
  {
    name: 'a routed message tells of no event',
    file: 'src/node/observe/traffic.ts',
    find: 'this.#passedRules(passage, path)',
    put: 'void path',
    test: 'node/observe/traffic',
    title: property(17)
  },
  {
    name: 'an exchange with somebody weaker is not put on record',
    file: 'src/node/observe/traffic.ts',
    find: 'if (from === to) return',
    put: 'if (from <= to) return',
    test: 'node/observe/traffic',
    title: property(31)
  },
  {
    name: 'the tiers of an exchange are put on record the wrong way round',
    file: 'src/node/observe/traffic.ts',
    find: '[tierText(from), tierText(to)]',
    put: '[tierText(to), tierText(from)]',
    test: 'node/observe/traffic',
    title: property(31)
  },
  {
    name: 'messages that came in are not counted',
    file: 'src/node/observe/traffic.ts',
    find: "this.#emit('message-received', header, { at, path: pathOf(header) })",
    put: 'void [header, at]',
    test: 'node/observe/traffic',
    title: property(32)
  },
  {
    name: 'waits between tries do not double',
    file: 'src/domain/channel/retry.ts',
    find: '{ baseMs: FIRST_RETRY_MS }',
    put: '{ baseMs: FIRST_RETRY_MS, factor: 1.5 }',
    test: 'node/messaging/channel-retry',
    title: property(12)
  },
  {
    name: 'a message goes to every agent that listens',
    file: 'src/node/messaging/subscriptions.ts',
    find: 'this.#byAgent.get(agentId)?.emit({ payload, ...header })',
    put: 'for (const one of this.#byAgent.values()) one.emit({ payload, ...header })',
    test: 'node/sdk/router',
    title: property(13)
  },
  {
    name: 'a broadcast stays on its node',
    file: 'src/node/sdk/router.ts',
    find: 'card.address !== from)',
    put: "card.address !== from && card.origin === 'local')",
    test: 'node/sdk/router',
    title: property(14)
  },
  {
    name: 'a capability is looked for nowhere',
    file: 'src/node/cards/select-target.ts',
    find: 'registry.findByCapability(first)',
    put: 'registry.listAll()',
    test: 'node/sdk/router',
    title: property(15)
  },
  {
    name: 'waiting messages of a channel leave in another order',
    file: 'src/node/sdk/channel.ts',
    find: 'this.#waiting.push({',
    put: 'this.#waiting.splice(1, 0, {',
    test: 'node/sdk/channels',
    title: property(11)
  },
  {
    name: 'a channel waits for ever',
    file: 'src/node/peers/peer-session.ts',
    find: "effect.type === 'reconnect'",
    put: "effect.type === 'closed'",
    test: 'node/sdk/channels',
    title: 'a channel that finds no link in time closes, with its waiting messages; then it takes nothing'
  },
  {
    name: 'nobody is told of a proposal without an answer',
    file: 'src/node/negotiation/negotiations.ts',
    find: 'this.#tellProposer(entry)',
    put: 'void this.#made',
    test: 'node/negotiation/negotiations',
    title: 'a proposal without an answer in time is timed out on both sides, and its proposer is notified'
  },
  {
    name: 'whoever knows the thread of a proposal decides on it',
    file: 'src/node/negotiation/negotiations.ts',
    find: "if (!isSame(known.thread, thread)) return 'full'",
    put: "if (known === null) return 'full'",
    test: 'node/negotiation/negotiations',
    title: 'a proposal on the thread of another member is refused, and changes nothing'
  },
  {
    name: 'a swarm is offered to who lacks a capability',
    file: 'src/node/swarms/eligibility.ts',
    find: 'if (!further.every(',
    put: 'if (further.length > 9 && !further.every(',
    test: 'node/sdk/swarms',
    title: property(25)
  },
  {
    name: 'only the first capability of the stages of a swarm is looked for',
    file: 'src/domain/swarm/expand.ts',
    find: 'known.get(key) ?? wants.length',
    put: 'known.get(key) ?? 0',
    test: 'node/swarms/stages.strategies',
    title: property(25)
  },
  {
    name: 'a result does not reach the shared state',
    file: 'src/node/swarms/session.ts',
    find: 'completed.map((one) => [one.id, one.result])',
    put: 'completed.slice(1).map((one) => [one.id, one.result])',
    test: 'node/sdk/swarms',
    title: property(26)
  },
  {
    name: 'an agent handles two messages at once',
    file: 'src/node/sdk/agent-coordinator.ts',
    find: 'concurrency: 1,',
    put: 'concurrency: 2,',
    test: 'node/sdk/agent-coordinator',
    title: 'messages of programs and of API callers reach an agent one after the other, and its state stays consistent'
  },
  {
    name: 'the state of an agent has no bound',
    file: 'src/domain/coordination/agent-state.ts',
    find: 'bytes > this.#maxBytes',
    put: 'bytes < 0',
    test: 'domain/coordination/agent-state',
    title: 'a state is a map that never exceeds its bytes, after any operations'
  },
  ...CARE_MUTANTS,
  ...CUT_RUN_MUTANTS,
  ...DOCUMENT_MUTANTS,
  ...POLICY_MUTANTS,
  ...HOPS_MUTANTS,
  ...NETWORK_MUTANTS,
  ...OAUTH_MUTANTS,
  ...PLACES_MUTANTS,
  ...PUSH_MUTANTS,
  ...RECORD_MUTANTS,
  ...OUTCOME_MUTANTS,
  ...HOSTILE_MUTANTS,
  ...MEMBER_CALL_MUTANTS,
  ...RELIABLE_MUTANTS,
  ...SWARM_MUTANTS,
  ...TAKEOVER_MUTANTS,
  ...TRUST_MUTANTS
]
