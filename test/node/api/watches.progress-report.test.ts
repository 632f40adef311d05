import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { reportOf } from '../../../src/node/api/watches.js'
import { holds } from '../../support/holds.js'

test('a report of an agent is its progress, total and message, and all else is text', (t: Assert) => {
  t.alike(reportOf({ progress: 1, total: 4, message: 'one' }), { progress: 1, total: 4, message: 'one' })
  t.alike(reportOf({ progress: 1 }), { progress: 1, total: null, message: null })
  t.alike(reportOf({ message: 'alone', total: 4 }), { progress: null, total: null, message: 'alone' })
  t.alike(reportOf({ progress: '1', step: 'a' }), {
    progress: null,
    total: null,
    message: '{"progress":"1","step":"a"}'
  })
  t.alike(reportOf('a\u202eb\nc'), { progress: null, total: null, message: 'ab c' })
  t.alike(reportOf(null), { progress: null, total: null, message: 'null' })
  t.alike(reportOf({ progress: 2, message: { a: 1 } }), { progress: 2, total: null, message: '{"a":1}' })
})

test('every report of an agent is passed on within bounds', async (t) => {
  await holds(
    t,
    fc.property(fc.anything(), (data) => {
      const { progress, total, message } = reportOf(data)
      return (
        [progress, total].every((one) => one === null || Number.isFinite(one)) &&
        (message === null || message.length <= 1024)
      )
    })
  )
})
