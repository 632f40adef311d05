import test from 'brittle'
import { callRpc, type RpcAnswer, rpcIdIn } from '../../../../src/adapters/a2a/server/json-rpc.js'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import { NodeError } from '../../../../src/kit/errors.js'
import { utf8 } from '../../../../src/kit/ids.js'

const called = (text: string): Promise<RpcAnswer> => callRpc(utf8(text), () => Promise.resolve({ value: 'done' }))
const faultOf = ({ given }: RpcAnswer): string =>
  'fault' in given && given.fault instanceof A2AFault ? `${given.fault.kind} ${given.fault.message}` : 'done'
const request = (params: string): string => `{"jsonrpc":"2.0","id":"r1","method":"GetTask","params":${params}}`

test('a request beyond the limits of JSON is refused by its id, in a sentence', async (t) => {
  const cases = [
    ['['.repeat(100) + ']'.repeat(100), 'the body is not taken: nested deeper than 32'],
    ['{"__proto__":{}}', 'the body is not taken: the key __proto__ is not allowed']
  ] as const
  for (const [params, message] of cases) {
    const answer = await called(request(params))
    t.alike([answer.id, faultOf(answer)], ['r1', `INVALID_REQUEST ${message}`])
    t.is(rpcIdIn(utf8(request(params))), 'r1')
  }
  for (const params of ['{}', `{"text":"${'x'.repeat(3_000_000)}"}`])
    t.alike(
      await called(request(params)),
      { id: 'r1', given: { value: 'done' } },
      'the bound of the body is the bound of a text'
    )
})

test('null is absent in the parameters of a client, except in its data', async (t) => {
  const params = {
    metadata: null,
    configuration: { historyLength: null, taskPushNotificationConfig: null },
    message: {
      messageId: 'm',
      contextId: null,
      parts: [{ text: 'a', data: null, metadata: null }, { data: null }, { data: { b: null } }]
    }
  }
  let got: unknown
  await callRpc(utf8(request(JSON.stringify(params))), (_method, given) =>
    Promise.resolve({ value: (got = given) as object })
  )
  t.alike(got, {
    configuration: {},
    message: { messageId: 'm', parts: [{ text: 'a' }, { data: null }, { data: { b: null } }] }
  })
})

test('a message without a readable id is refused without an id', async (t) => {
  const cases = [
    ['{"id":"r1"', 'PARSE_ERROR the body is not JSON'],
    ['[{"id":"r1"}]', 'INVALID_REQUEST the protocol has no batches: send one request'],
    ['"r1"', 'INVALID_REQUEST a request is an object'],
    ['{"id":{},"__proto__":1}', 'INVALID_REQUEST id: must be a text of at most 256 characters or a whole number']
  ] as const
  for (const [body, fault] of cases) {
    const answer = await called(body)
    t.alike([answer.id, faultOf(answer)], [null, fault])
  }
})

test('work that is canceled while its client waits for it is unavailable, not a failure of the node', async (t) => {
  const body = utf8(request('{"id":"task_1"}'))
  const { given } = await callRpc(body, () => Promise.reject(new NodeError('CANCELED', 'canceled')))
  t.is('fault' in given ? [given.fault.kind, given.fault.status].join(' ') : 'done', 'UNAVAILABLE 503')
})
