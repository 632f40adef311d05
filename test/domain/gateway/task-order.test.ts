import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  cursorText,
  fits,
  isBefore,
  type PageCursor,
  readCursor,
  type TaskFilter,
  TaskOrder
} from '../../../src/domain/gateway/task-order.js'
import type { GatewayTask } from '../../../src/domain/gateway/task.js'
import { holds } from '../../support/holds.js'

function task(id: number, updatedAt: number, contextId: string): GatewayTask {
  return {
    id: `task_${id}`,
    contextId,
    owner: 'token:1',
    messageId: `m${id}`,
    agent: 'text@node',
    capability: 'text.do',
    by: { maxTier: 0 },
    state: id % 2 === 0 ? 'working' : 'completed',
    message: null,
    since: updatedAt,
    createdAt: 0,
    updatedAt,
    generation: 1,
    run: { requestId: 'r', taskId: `task_${id}` }
  }
}

const change = fc.record({
  id: fc.integer({ min: 0, max: 12 }),
  at: fc.integer({ min: 0, max: 20 }),
  context: fc.constantFrom('a', 'b'),
  isGone: fc.boolean()
})
const filter: fc.Arbitrary<TaskFilter> = fc.oneof(
  fc.constant({}),
  fc.constant({ contextId: 'a' }),
  fc.constant({ state: 'working' as const }),
  fc.constant({ since: 10 })
)

test('pages together have every task that fits once, the newest change first, and say how many there are', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.array(change, { maxLength: 120 }), filter, fc.integer({ min: 1, max: 5 }), (changes, by, limit) => {
      const order = new TaskOrder()
      const model = new Map<string, GatewayTask>()
      for (const { id, at, context, isGone } of changes) {
        const one = task(id, at, context)
        const before = model.get(one.id)
        if (!isGone) order.put(one, before)
        else if (before !== undefined) order.remove(before)
        // Who could not be let go of after all is put back as it was.
        if (isGone && before !== undefined && at % 2 === 0) {
          order.put(before)
          continue
        }
        if (isGone) model.delete(one.id)
        else model.set(one.id, one)
      }
      const expected = [...model.values()].filter((one) => fits(one, by)).sort((a, b) => (isBefore(a, b) ? -1 : 1))
      const found: GatewayTask[] = []
      let after: PageCursor | null = null
      do {
        const page = order.page(by, { after, limit })
        if (page.total !== expected.length || page.tasks.length > limit) return false
        found.push(...page.tasks)
        after = page.next === null ? null : readCursor(cursorText(page.next))
      } while (after !== null)
      return order.size === model.size && JSON.stringify(found) === JSON.stringify(expected)
    })
  )
})

test('a text that is no cursor of this node is none', async (t: Assert) => {
  await holds(
    t,
    fc.property(fc.string(), (text) => {
      const cursor = readCursor(text)
      return cursor === null || (Number.isSafeInteger(cursor.since) && cursor.id !== '')
    })
  )
  for (const text of ['', '.', 'a.', '.a', 'A.b', '1.a/b', `${'9'.repeat(11)}.a`]) t.is(readCursor(text), null, text)
  t.alike(readCursor(cursorText({ since: 1_700_000_000_000, id: 'task_a-b' })), {
    since: 1_700_000_000_000,
    id: 'task_a-b'
  })
})
