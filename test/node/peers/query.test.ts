import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import type { ChannelMessage } from '../../../src/domain/channel/frames.js'
import { Queries } from '../../../src/node/peers/query.js'
import { countingIds } from '../../support/counting-ids.js'
import { holds } from '../../support/holds.js'
import { ManualClock } from '../../support/manual-clock.js'

interface Sent {
  readonly peer: string
  readonly id: string
}

/** Questions for ways; `gone` are neighbours to whom nothing can be sent. */
function make(gone: readonly string[] = []): { clock: ManualClock; questions: Queries<'way'>; sent: Sent[] } {
  const clock = new ManualClock()
  const sent: Sent[] = []
  const send = (peer: string, message: ChannelMessage): void => {
    if (gone.includes(peer)) throw new NodeError('PEER_OFFLINE', 'gone')
    if (message.kind === 'control') sent.push({ peer, id: (message.body as { id: string }).id })
  }
  return { clock, questions: new Queries({ clock, ids: countingIds(), peers: { send } }, 'way'), sent }
}

/** Asks, and notes who is heard and whether it is over. */
function ask(questions: Queries<'way'>, asked: readonly string[]): { heard: string[]; isOver(): Promise<boolean> } {
  const heard: string[] = []
  let isOver = false
  const over = questions.ask(asked, {
    patienceMs: 1000,
    body: (id) => ({ id, to: 't', isFurther: false }),
    onAnswer: (peer) => heard.push(peer)
  })
  void over.then(() => (isOver = true))
  return { heard, isOver: () => new Promise((resolve) => setImmediate(() => resolve(isOver))) }
}

const peers = ['p', 'q', 'r', 's']

test('each asked peer counts once, on its own question, until all have answered or the time is over', async (t) => {
  const answer = fc.record({ peer: fc.constantFrom(...peers), question: fc.nat(2), ms: fc.nat(400) })
  const property = fc.asyncProperty(
    fc.subarray(peers),
    fc.subarray(peers),
    fc.array(answer, { maxLength: 20 }),
    async (first, second, answers) => {
      const { clock, questions, sent } = make()
      const asked = [first, second]
      const open = asked.map((one) => ask(questions, one))
      const ids = asked.map((one, index) =>
        one.length === 0 ? 'none' : sent.find((_, at) => at === (index === 0 ? 0 : first.length))?.id
      )
      const expected = asked.map((): string[] => [])
      let now = 0
      for (const { peer, question, ms } of answers) {
        now += ms
        clock.advance(ms)
        questions.answered(peer, { id: ids[question] ?? 'guessed', further: 0 })
        const known = expected[question]
        if (known !== undefined && now < 1000 && asked[question]?.includes(peer) && !known.includes(peer))
          known.push(peer)
      }
      for (const [index, one] of open.entries()) {
        assert.deepEqual(one.heard, expected[index])
        assert.equal(await one.isOver(), now >= 1000 || one.heard.length === asked[index]?.length)
      }
      clock.advance(1000)
      for (const one of open) assert.ok(await one.isOver())
      assert.equal(clock.pending, 0)
    }
  )
  await holds(t, property, 200)
})

test('a neighbour that went in this moment is as one that does not answer', async (t) => {
  const { clock, questions, sent } = make(['p'])
  const open = ask(questions, ['p', 'q'])
  questions.answered('q', { id: sent[0]?.id ?? '', further: null })
  t.alike(open.heard, ['q'])
  t.absent(await open.isOver())
  clock.advance(1000)
  t.ok(await open.isOver())
  questions.answer('p', 'way-found', { id: 'x', further: null })
  t.pass('nor does answering it throw')
})

test('closed, it waits for nobody', async (t) => {
  const { clock, questions } = make()
  const open = ask(questions, peers)
  questions.close()
  t.ok(await open.isOver())
  t.is(clock.pending, 0)
})
