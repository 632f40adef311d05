import test from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import type { DeadLetter } from '../../../../src/domain/gateway/push.js'
import { DEAD_LETTER_MS, DeadLetters, MAX_DEAD_LETTERS_OF_ONE } from '../../../../src/node/gateway/push/dead-letters.js'

const LETTER: DeadLetter = { task: 'task_a', event: 'task.completed', at: 1, tries: 3, reason: 'HTTP 500', deadAt: 10 }

test('a dead letter is read as it was kept, after a restart too, until it is forgotten', async (t) => {
  const ledger = createMemoryLedger()
  const dead = new DeadLetters(ledger)
  await ledger.commit(dead.add({ hook: 'hook_1', generation: 2, owner: 'alice' }, LETTER))
  const next = new DeadLetters(ledger)
  await next.start(() => 'alice')
  t.alike([[...next.ids()], next.of('hook_1'), next.of('hook_2')], [['hook_1.2'], ['hook_1.2'], []])
  t.alike((await next.read('hook_1.2'))?.letter, LETTER)
  await ledger.commit(next.removal(['hook_1.2', 'hook_9.9']))
  t.ok(next.has('hook_1.2'), 'it is there until it is forgotten')
  next.forget(['hook_1.2'])
  t.alike([next.has('hook_1.2'), next.size, await next.read('hook_1.2')], [false, 0, null])
  const last = new DeadLetters(ledger)
  await last.start(() => 'alice')
  t.is(last.size, 0)
})

test('a dead letter is past its time after a week, and not before', (t) => {
  const dead = new DeadLetters(createMemoryLedger())
  dead.add({ hook: 'hook_1', generation: 1, owner: 'alice' }, LETTER)
  t.alike(dead.past(LETTER.deadAt + DEAD_LETTER_MS), [])
  t.alike(dead.past(LETTER.deadAt + DEAD_LETTER_MS + 1), ['hook_1.1'])
})

test('a caller with too many dead letters loses its oldest one, and others lose none', (t) => {
  const dead = new DeadLetters(createMemoryLedger())
  dead.add({ hook: 'hook_b', generation: 1, owner: 'bob' }, LETTER)
  for (let at = 1; at <= MAX_DEAD_LETTERS_OF_ONE; at++)
    dead.add({ hook: 'hook_a', generation: at, owner: 'alice' }, LETTER)
  t.is(dead.pushedOut, 0)
  const changes = dead.add({ hook: 'hook_a', generation: 5000, owner: 'alice' }, LETTER)
  t.is(changes.length, 2)
  t.alike([dead.pushedOut, dead.has('hook_a.1'), dead.has('hook_a.2'), dead.has('hook_b.1')], [1, false, true, true])
})
