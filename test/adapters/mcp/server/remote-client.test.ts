import test, { type Assert } from 'brittle'
import { withoutCommands } from '../../../../src/adapters/mcp/server/remote-client.js'
import type { CallName, NodeApi } from '../../../../src/ports/node-api.js'

/** The answer of a call, as a remote client gets it. */
async function remotely(name: CallName, answer: object): Promise<unknown> {
  const api = { call: () => Promise.resolve(answer) } as unknown as NodeApi
  return await withoutCommands(api).call(name, {})
}

test('a remote client gets errors without their command, and data with members of these names whole', async (t: Assert) => {
  const error = { code: 'NOT_FOUND', message: 'no such task' }
  const withNext = { ...error, next: 'a2a-node tasks ls' }
  t.alike(await remotely('node.status', { problems: [withNext] }), { problems: [error] })
  t.alike(await remotely('tasks.show', { error: { ...withNext, data: withNext } }), {
    error: { ...error, data: error }
  })
  const answers: readonly (readonly [CallName, object])[] = [
    ['documents.read', { type: 'json', value: { steps: [withNext] } }],
    ['tasks.show', { payload: withNext, input: withNext, result: withNext }],
    ['agents.show', { capabilities: [{ inputSchema: { default: withNext }, outputSchema: { const: withNext } }] }]
  ]
  for (const [name, answer] of answers) t.alike(await remotely(name, answer), answer, name)
})
