import test from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../src/kit/errors.js'
import { type IdKind, MAX_CANDIDATES, MIN_ID_CHARACTERS, resolveId } from '../../src/kit/resolve-id.js'
import { holds } from '../support/holds.js'

const TASKS: IdKind<number> = {
  one: 'task',
  several: 'tasks',
  prefix: 'task_',
  code: 'TASK_NOT_FOUND',
  list: 'a2a-node tasks'
}

function mapOf(ids: readonly string[]): Map<string, number> {
  return new Map(ids.map((id, at) => [id, at]))
}

function errorOf(text: string, ids: readonly string[], label?: (id: string, at: number) => string): NodeError {
  try {
    resolveId(text, mapOf(ids), label === undefined ? TASKS : { ...TASKS, label })
  } catch (error) {
    if (error instanceof NodeError) return error
  }
  throw new Error(`"${text}" is resolved`)
}

test('an id, or a beginning of at least four characters after its prefix that no other has, means that id', async (t) => {
  const character = fc.constantFrom(...'abc')
  const id = fc.string({ unit: character, minLength: 1, maxLength: 7 }).map((rest) => `task_${rest}`)
  const property = fc.property(
    fc.uniqueArray(id, { maxLength: 6 }),
    fc.oneof(id, fc.constantFrom('', 'task', 'task_')),
    (ids, text) => {
      const fitting = ids.filter((one) => one.startsWith(text))
      const isLong = text.length >= 'task_'.length + MIN_ID_CHARACTERS
      if (ids.includes(text)) return resolveId(text, mapOf(ids), TASKS) === ids.indexOf(text)
      if (text !== '' && fitting.length > 1) return errorOf(text, ids).code === 'AMBIGUOUS_NAME'
      if (fitting.length === 1 && isLong) return ids[resolveId(text, mapOf(ids), TASKS)] === fitting[0]
      return errorOf(text, ids).code === 'TASK_NOT_FOUND'
    }
  )
  await holds(t, property, 2000)
})

test('each error names candidates where there are some, and the command that lists all', (t) => {
  const ids = Array.from({ length: 20 }, (_, at) => `task_same${at}`)
  const several = errorOf('task_same', ids, (id, at) => `${id} (${at})`)
  t.alike(several.data, { candidates: ids.slice(0, MAX_CANDIDATES).map((id, at) => `${id} (${at})`) })
  const short = errorOf('task_a', ['task_abcdef'])
  t.is(short.message, 'no task "task_a": the beginning of an id needs at least 4 characters after task_')
  t.alike(short.data, { candidates: ['task_abcdef'] })
  t.alike(errorOf('task_abcdeg', ['task_abcdef', 'task_xyz12']).data, { candidates: ['task_abcdef'] }, 'a mistyped one')
  const none = errorOf('task_none', [])
  t.is(none.data, undefined)
  for (const error of [several, short, none]) t.alike(error.next, ['a2a-node tasks'])
})
