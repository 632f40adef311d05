import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import {
  asksFor,
  MAX_PUSH_CREDENTIALS,
  MAX_PUSH_TOKEN,
  MAX_PUSH_URL,
  pushEventOf,
  readPushTarget
} from '../../../src/domain/gateway/push.js'
import type { GatewayEvent } from '../../../src/domain/gateway/task.js'
import { holds } from '../../support/holds.js'

const URL = 'https://example.com/hook'

test('a push config is read within its bounds, and a value that would break a header is refused', (t: Assert) => {
  const good = [
    { url: URL },
    { url: URL, id: 'ä-1', token: 'a b', events: ['task.*'] },
    { url: URL, authentication: { schemes: ['Bearer'], credentials: 'x' } },
    { url: URL, authentication: { schemes: ['HMAC-SHA256'], credentials: 'sixteen letters!' } },
    { url: URL, authentication: { schemes: ['hmac-sha256'], credentials: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } }
  ]
  for (const value of good) t.alike(readPushTarget(value), { ok: true, value }, JSON.stringify(value))
  const bad = [
    {},
    { url: '' },
    { url: `https://x.example/${'a'.repeat(MAX_PUSH_URL)}` },
    { url: URL, id: 'a/b' },
    { url: URL, id: '' },
    { url: URL, token: 'a\r\nx: y' },
    { url: URL, token: 'x'.repeat(MAX_PUSH_TOKEN + 1) },
    { url: URL, token: 'é' },
    { url: URL, authentication: { schemes: [] } },
    { url: URL, authentication: { schemes: ['a b'] } },
    { url: URL, authentication: { schemes: ['Bearer'], credentials: 'a\nb' } },
    { url: URL, authentication: { schemes: ['Bearer'], credentials: 'x'.repeat(MAX_PUSH_CREDENTIALS + 1) } },
    { url: URL, authentication: { schemes: ['hmac-sha256'] } },
    { url: URL, authentication: { schemes: ['HMAC-SHA256'], credentials: 'short' } },
    { url: URL, authentication: { schemes: ['HMAC-SHA256'], credentials: 'whsec_!!!!!!!!!!!!!!!!!!' } },
    { url: URL, events: [] },
    { url: URL, events: ['swarm.done'] },
    { url: URL, events: ['task.completed', 'task.done'] }
  ]
  for (const value of bad) t.absent(readPushTarget(value).ok, JSON.stringify(value).slice(0, 100))
})

test('no value makes the reader of push configs throw, and every accepted value fits into headers', async (t: Assert) => {
  const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: 'binary', maxLength: 40 }))
  const odd = fc.record(
    {
      id: text,
      url: text,
      token: text,
      authentication: fc.record({ schemes: fc.array(text), credentials: text }),
      events: fc.array(text)
    },
    { requiredKeys: [] }
  )
  await holds(
    t,
    fc.property(fc.oneof(odd, fc.anything()), (value) => {
      const read = readPushTarget(value)
      if (!read.ok) return read.faults.length > 0
      const { token = 'x', authentication } = read.value
      return new Headers({
        token,
        authorization: `${authentication?.schemes[0] ?? 'x'} ${authentication?.credentials ?? 'x'}`
      }).has('token')
    })
  )
})

test('a hook gets states and artifacts, one of 0.3 the last chunk alone, and events that it subscribed to', (t: Assert) => {
  const head = { generation: 2, at: 0 }
  const artifact = { artifactId: 'a', parts: [{ text: 'x' }] }
  const working: GatewayEvent = { ...head, type: 'status', state: 'working' }
  const chunk = (lastChunk: boolean): GatewayEvent => ({ ...head, type: 'artifact', artifact, append: true, lastChunk })
  const said: GatewayEvent = {
    ...head,
    type: 'message',
    message: { messageId: 'm', role: 'user', parts: [{ text: 'x' }] }
  }
  t.alike(
    [working, chunk(false), chunk(true), said].map((event) => pushEventOf(event, '1.0')),
    ['task.working', 'task.artifact', 'task.artifact', null]
  )
  t.alike(
    [working, chunk(false), chunk(true), said].map((event) => pushEventOf(event, '0.3')),
    ['task.working', null, 'task.artifact', null]
  )
  t.ok(
    asksFor({}, 'task.working') &&
      asksFor({ events: ['task.*'] }, 'task.failed') &&
      asksFor({ events: ['task.failed'] }, 'task.failed')
  )
  t.absent(asksFor({ events: ['task.failed', 'task.completed'] }, 'task.working'))
})
