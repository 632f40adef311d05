import test, { type Assert } from 'brittle'
import { MAX_REMOTE_CONTEXTS, RemoteContexts } from '../../../../src/adapters/a2a/remote/remote-contexts.js'
import type { Conversation } from '../../../../src/domain/gateway/conversation.js'
import { FakeStore } from '../../../support/fake-store.js'

const conversationOf = (contextId: string, id: string, node = 'here'): Conversation => ({
  contextId,
  taskId: 't',
  message: { messageId: 'm', role: 'user', parts: [{ text: 'a' }] },
  history: [],
  isCut: false,
  caller: { kind: 'token', id, node }
})

test('a caller, or a node that names many callers, takes no context of another caller', async (t: Assert) => {
  const contexts = new RemoteContexts({ store: new FakeStore(), onFault: (error) => t.fail(String(error)) })
  const quiet = [conversationOf('c', 'quiet'), conversationOf('c', 'quiet', 'far'), conversationOf('c', 'other')]
  for (const [at, one] of quiet.entries()) await contexts.put('bot', one, `theirs ${at}`)
  const busy = Array.from({ length: MAX_REMOTE_CONTEXTS + 10 }, (_, at) => conversationOf(`c${at}`, 'busy'))
  await Promise.all(busy.map((one) => contexts.put('bot', one, 'busy')))
  const many = Array.from({ length: MAX_REMOTE_CONTEXTS + 10 }, (_, at) => conversationOf('c', `made ${at}`, 'evil'))
  await Promise.all(many.map((one) => contexts.put('bot', one, 'evil')))
  const known = await Promise.all(quiet.map((one) => contexts.of('bot', one)))
  t.alike(known, ['theirs 0', 'theirs 1', 'theirs 2'])
  t.is(await contexts.of('bot', conversationOf('c0', 'busy')), null)
  t.is(await contexts.of('bot', conversationOf(`c${MAX_REMOTE_CONTEXTS + 9}`, 'busy')), 'busy')
})
