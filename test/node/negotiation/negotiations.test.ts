import assert from 'node:assert/strict'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { decodeEnvelope } from '../../../src/domain/envelope/codec.js'
import type { A2AEnvelope } from '../../../src/domain/envelope/envelope.js'
import type { TaskProposal } from '../../../src/domain/task/negotiation.js'
import { createLayer, type Layer } from '../../../src/node/sdk/layer.js'
import type { ProposalDraft } from '../../../src/node/negotiation/negotiations.js'
import { failsWith } from '../../support/fails.js'
import { capability, echo } from '../../support/fake-agents.js'
import { type FakeNode, World } from '../../support/fake-node.js'
import { forge } from '../../support/forge.js'
import { holds } from '../../support/holds.js'
import { isOpen } from '../../support/exchanges.js'

interface Scene {
  readonly world: World
  readonly here: FakeNode
  readonly peer: FakeNode
  readonly asks: Layer
  readonly answers: Layer
  /** Addresses of `boss` here and `bot` there, which can do `bot.do`. */
  readonly boss: string
  readonly bot: string
  /** What each of them was sent, in order. */
  readonly toBoss: A2AEnvelope[]
  readonly toBot: A2AEnvelope[]
  /** Proposals that the handler of `bot` was given. */
  readonly received: TaskProposal[]
  readonly draft: ProposalDraft
}

async function scene(t: Assert): Promise<Scene> {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  const [asks, answers] = [createLayer(here.core), createLayer(peer.core)]
  const { address: boss } = await here.core.attach({ id: 'boss' })
  const { address: bot } = await peer.core.attach({ id: 'bot', capabilities: [capability('bot.do')], run: () => 1 })
  await world.settle()
  const [toBoss, toBot, received]: [A2AEnvelope[], A2AEnvelope[], TaskProposal[]] = [[], [], []]
  asks.router.onReceive('boss', (envelope) => toBoss.push(envelope))
  answers.router.onReceive('bot', (envelope) => toBot.push(envelope))
  answers.negotiator.onProposalReceived('bot', (proposal) => received.push(proposal))
  const draft: ProposalDraft = {
    proposerAgentId: 'boss',
    taskDescription: 'count',
    requiredCapabilities: ['bot.do'],
    estimatedComplexity: 'medium',
    deadlineMs: 5000
  }
  return { world, here, peer, asks, answers, boss, bot, toBoss, toBot, received, draft }
}

const arbComplexity = fc.constantFrom('simple' as const, 'medium' as const, 'complex' as const)

test('Feature: a2a-mcp-protocols, Property 23: Task negotiation message structure between nodes', async (t) => {
  const { world, asks, answers, boss, bot, toBoss, toBot, received, draft } = await scene(t)
  const arbAnswer = fc.oneof(
    fc.record({ ms: fc.integer({ min: 1, max: 1_000_000 }) }),
    fc.record({
      reason: fc.stringMatching(/^[A-Z_]{1,20}$/),
      alternative: fc.option(fc.string({ minLength: 1 }), { nil: undefined })
    })
  )
  await holds(
    t,
    fc.asyncProperty(
      fc.string(),
      arbComplexity,
      fc.integer({ min: 1000, max: 60_000 }),
      arbAnswer,
      async (text, complexity, deadlineMs, answer) => {
        for (const list of [toBoss, toBot, received]) list.length = 0
        const asked = await asks.negotiator.propose({
          ...draft,
          taskDescription: text,
          estimatedComplexity: complexity,
          deadlineMs
        })
        await world.settle()
        const fields = {
          taskDescription: text,
          requiredCapabilities: ['bot.do'],
          estimatedComplexity: complexity,
          deadlineMs
        }
        assert.deepEqual([toBot[0]?.type, toBot[0]?.payload], ['task-proposal', fields])
        assert.deepEqual(
          received.map((one) => [one.proposalId, one.proposerAgentId, one.status]),
          [[asked.proposalId, boss, 'pending']]
        )
        const { proposalId } = asked
        if ('ms' in answer) await answers.negotiator.accept(proposalId, answer.ms)
        else await answers.negotiator.reject(proposalId, answer.reason, answer.alternative)
        await world.settle()
        const payload =
          'ms' in answer
            ? { proposalId, acceptedBy: bot, estimatedCompletionMs: answer.ms }
            : {
                proposalId,
                rejectionReason: answer.reason,
                ...(answer.alternative === undefined ? {} : { alternativeSuggestion: answer.alternative })
              }
        assert.deepEqual(
          [toBoss[0]?.type, toBoss[0]?.payload],
          ['ms' in answer ? 'task-accept' : 'task-reject', payload]
        )
        const settled = asks.negotiator.getProposal(proposalId)
        assert.equal(settled?.status, 'ms' in answer ? 'accepted' : 'rejected')
        assert.equal(settled?.acceptedBy ?? settled?.rejectionReason, 'ms' in answer ? bot : answer.reason)
        assert.equal(settled?.alternativeSuggestion, 'ms' in answer ? undefined : answer.alternative)
      }
    ),
    100
  )
})

test('Feature: a2a-mcp-protocols, Property 24: Task acceptance creates correlation thread between nodes', async (t) => {
  const { world, asks, answers, boss, bot, toBoss, toBot, draft } = await scene(t)
  await holds(
    t,
    fc.asyncProperty(fc.array(fc.constantFrom('boss', 'bot'), { maxLength: 6 }), async (later) => {
      toBoss.length = 0
      toBot.length = 0
      const { proposalId, correlationId } = await asks.negotiator.propose(draft)
      await world.settle()
      await answers.negotiator.accept(proposalId, 100)
      await world.settle()
      for (const who of later) {
        const [layer, sender, recipient] = who === 'boss' ? [asks, boss, bot] : [answers, bot, boss]
        const result = await layer.router.send(
          layer.envelopes.create({ sender, recipient, type: 'stream-data', payload: who, correlationId })
        )
        assert.equal(result.error, undefined)
      }
      await world.settle()
      const all = [...toBot, ...toBoss]
      assert.equal(all.length, 2 + later.length)
      assert.ok(all.every((one) => one.correlationId === correlationId))
      for (const layer of [asks, answers]) {
        const types = layer.thread(correlationId).map((one) => one.type)
        assert.deepEqual(types, ['task-proposal', 'task-accept', ...later.map(() => 'stream-data')])
      }
    }),
    100
  )
})

test('a proposal without an answer in time is timed out on both sides, and its proposer is notified', async (t) => {
  const { world, asks, answers, bot, toBoss, received, draft } = await scene(t)
  const settled: string[] = []
  asks.negotiator.onSettled(({ status }) => settled.push(status))
  const { proposalId, correlationId } = await asks.negotiator.propose(draft)
  await world.settle()
  t.alike([received.length, asks.negotiator.listPending().length, answers.negotiator.listPending().length], [1, 1, 1])
  await world.pass(4750)
  t.alike(settled, [])
  await world.pass(500)
  t.alike(settled, ['timed-out'])
  t.is(asks.negotiator.getProposal(proposalId)?.status, 'timed-out')
  const [told] = toBoss
  t.alike(
    [told?.type, told?.correlationId, (told?.payload as { code: string } | undefined)?.code],
    ['error', correlationId, 'PROPOSAL_TIMEOUT']
  )
  await failsWith(t, 'PROPOSAL_TIMEOUT', () => answers.negotiator.accept(proposalId, 100))
  t.alike([asks.negotiator.listPending(), answers.negotiator.listPending()], [[], []])
  t.is(asks.negotiator.getProposal(proposalId)?.acceptedBy, undefined, `${bot} was too late`)
})

test('agents without a handler are answered for by their node', async (t) => {
  const { world, here, peer, asks, draft } = await scene(t)
  peer.source.set([echo('text')])
  await here.core.attach({ id: 'second' })
  await world.settle()
  const asked = await asks.negotiator.propose({ ...draft, to: 'text', requiredCapabilities: ['text.do'] })
  await world.settle()
  t.is(asks.negotiator.getProposal(asked.proposalId)?.acceptedBy, `text@${peer.id}`)
  const lacking = await asks.negotiator.propose({ ...draft, to: 'text', requiredCapabilities: ['bot.do'] })
  await world.settle()
  t.is(asks.negotiator.getProposal(lacking.proposalId)?.rejectionReason, 'CAPABILITY_NOT_FOUND')
})

test('a proposal is answered once, by its own node; bad drafts and unknown proposals are refused', async (t) => {
  const { world, asks, answers, draft } = await scene(t)
  const { proposalId } = await asks.negotiator.propose(draft)
  await world.settle()
  await failsWith(t, 'TASK_NOT_FOUND', () => asks.negotiator.accept(proposalId, 1))
  await failsWith(t, 'USAGE', () => answers.negotiator.accept(proposalId, 0))
  await failsWith(t, 'USAGE', () => answers.negotiator.reject(proposalId, ' '))
  await answers.negotiator.reject(proposalId, 'BUSY')
  await failsWith(t, 'USAGE', () => answers.negotiator.accept(proposalId, 1))
  await failsWith(t, 'INVALID_ENVELOPE', () => asks.negotiator.propose({ ...draft, deadlineMs: 0 }))
  await failsWith(t, 'CAPABILITY_NOT_FOUND', () =>
    asks.negotiator.propose({ ...draft, requiredCapabilities: ['none'] })
  )
  await failsWith(t, 'USAGE', () => asks.negotiator.propose({ ...draft, requiredCapabilities: [] }))
  await failsWith(t, 'AGENT_NOT_FOUND', () => asks.negotiator.propose({ ...draft, proposerAgentId: 'ghost' }))
  await world.settle()
  t.alike(asks.negotiator.listPending(), [])
})

/** A proposal to `bot` as a peer may send it, on a thread of its choice. */
function proposalTo(peer: FakeNode, correlationId: string): Partial<A2AEnvelope> {
  const payload = {
    taskDescription: 'a',
    requiredCapabilities: ['bot.do'],
    estimatedComplexity: 'simple',
    deadlineMs: 5000
  }
  return { type: 'task-proposal', recipient: `bot@${peer.id}`, correlationId, payload }
}

/** The codes that `node` has answered with since `mark`, as its links carried them to another node. */
function refusals(node: FakeNode, to: FakeNode): (string | undefined)[] {
  return node.links.open
    .filter((link) => link.peer === to.id)
    .flatMap((link) => link.sent)
    .flatMap((frame) => {
      const read = frame[0] === 0 ? decodeEnvelope(frame.subarray(1)) : null
      const payload = read?.ok === true && read.header.type === 'error' ? read.payload() : null
      return payload?.ok === true ? [(payload.value as { code?: string }).code] : []
    })
}

test('a proposal that comes again is decided on once, and each copy ends one opening of its thread', async (t) => {
  const { world, here, peer, answers, received } = await scene(t)
  for (let copy = 0; copy < 3; copy++) forge(here, peer, proposalTo(peer, 'again'))
  await world.settle()
  t.is(received.length, 1)
  t.is(peer.counted('messages_sent', 'task-accept'), 0)
  t.ok(isOpen(peer, { peer: here.id, correlationId: 'again', own: 'bot' }))
  await answers.negotiator.reject('again', 'BUSY')
  t.absent(isOpen(peer, { peer: here.id, correlationId: 'again', own: 'bot' }), 'nothing of it is open')
})

test('a copy of an accepted proposal leaves its thread as it is', async (t) => {
  const { world, here, peer, answers, toBot } = await scene(t)
  forge(here, peer, proposalTo(peer, 'kept'))
  await world.settle()
  await answers.negotiator.accept('kept', 100)
  forge(here, peer, proposalTo(peer, 'kept'))
  forge(here, peer, { type: 'stream-data', recipient: `bot@${peer.id}`, correlationId: 'kept', payload: 'more' })
  await world.settle()
  t.is(toBot.at(-1)?.payload, 'more')
  t.is(answers.negotiator.getProposal('kept')?.status, 'accepted')
})

test('a proposal on the thread of another member is refused, and changes nothing', async (t) => {
  const { world, here, peer, answers, received } = await scene(t)
  const other = await world.member('other')
  await world.link(here, peer, other)
  forge(here, peer, proposalTo(peer, 'mine'))
  await world.settle()
  forge(other, peer, proposalTo(peer, 'mine'))
  await world.settle()
  t.alike(refusals(peer, other), ['OVERLOADED'])
  t.absent(isOpen(peer, { peer: other.id, correlationId: 'mine', own: 'bot' }))
  t.is(received.length, 1)
  t.is(answers.negotiator.getProposal('mine')?.proposerAgentId, `operator@${here.id}`)
  t.ok(isOpen(peer, { peer: here.id, correlationId: 'mine', own: 'bot' }))
})

test('one peer may have 64 proposals waiting, further ones are refused; others keep their slots', async (t) => {
  const { world, here, peer, answers, received } = await scene(t)
  const other = await world.member('other')
  await world.link(here, peer, other)
  for (let at = 0; at < 66; at++) forge(here, peer, proposalTo(peer, `many-${at}`))
  forge(other, peer, proposalTo(peer, 'one'))
  await world.settle()
  t.is(received.length, 65)
  t.alike(refusals(peer, here), ['OVERLOADED', 'OVERLOADED'])
  t.is(received.filter((one) => one.proposalId === 'one').length, 1)
  await answers.negotiator.reject('many-0', 'BUSY')
  forge(here, peer, proposalTo(peer, 'next'))
  await world.settle()
  t.is(received.at(-1)?.proposalId, 'next', 'an answer does not wait')
})

test('while as many proposals wait as are kept, a further one is refused', async (t) => {
  const { world, here, peer, answers, received, draft } = await scene(t)
  const { address: bot } = await peer.core.attach({ id: 'second' })
  for (let at = 0; at < 1000; at++) await answers.negotiator.propose({ ...draft, proposerAgentId: bot, to: 'bot' })
  t.is(received.length, 1000)
  forge(here, peer, proposalTo(peer, 'late'))
  await world.settle()
  t.alike(refusals(peer, here), ['OVERLOADED'])
  t.absent(isOpen(peer, { peer: here.id, correlationId: 'late', own: 'bot' }))
  t.is(received.length, 1000)
})

test('an answer that could not be sent may be given again, while there is time', async (t) => {
  const { world, here, peer, asks, answers, received, draft } = await scene(t)
  answers.negotiator.onProposalReceived('bot', (proposal) => received.push(proposal))
  const { proposalId } = await asks.negotiator.propose({ ...draft, deadlineMs: 60_000 })
  await world.settle()
  const statuses = (): (string | undefined)[] =>
    [asks, answers].map(({ negotiator }) => negotiator.getProposal(proposalId)?.status)
  for (const link of [...peer.links.open]) link.close('test')
  await world.settle()
  const [accepted, again] = [answers.negotiator.accept(proposalId, 1000), answers.negotiator.accept(proposalId, 1000)]
  const failures = Promise.all([failsWith(t, 'PEER_OFFLINE', () => accepted), failsWith(t, 'USAGE', () => again)])
  await world.pass(10_000)
  await failures
  t.alike(statuses(), ['pending', 'pending'])
  await world.link(here, peer)
  const answered = answers.negotiator.accept(proposalId, 1000)
  await world.settle()
  await answered
  t.alike(statuses(), ['accepted', 'accepted'])
  await failsWith(t, 'USAGE', () => answers.negotiator.reject(proposalId, 'too late'))
})

test('an answer that could not be sent before the deadline leaves the proposal timed out', async (t) => {
  const { world, peer, asks, answers, draft } = await scene(t)
  answers.negotiator.onProposalReceived('bot', () => {})
  const { proposalId } = await asks.negotiator.propose({ ...draft, deadlineMs: 1000 })
  await world.settle()
  for (const link of [...peer.links.open]) link.close('test')
  await world.settle()
  const failure = failsWith(t, 'PEER_OFFLINE', () => answers.negotiator.accept(proposalId, 1000))
  await world.pass(10_000)
  await failure
  t.is(answers.negotiator.getProposal(proposalId)?.status, 'timed-out')
})
