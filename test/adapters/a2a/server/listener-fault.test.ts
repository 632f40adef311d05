import test from 'brittle'
import { A2AFault, faultOf } from '../../../../src/adapters/a2a/server/fault.js'
import { listenerFault } from '../../../../src/adapters/a2a/server/listener-fault.js'
import { readList } from '../../../../src/adapters/a2a/server/read-params.js'
import { NodeError } from '../../../../src/kit/errors.js'

const refused = (challenge: string) => ({
  status: 401,
  code: 'UNAUTHORIZED',
  message: 'refused',
  headers: { 'www-authenticate': challenge }
})

test('errors carry the names of the gateway document: no token, a wrong token, a context that the task is not of', (t) => {
  const [none, wrong] = [refused('Bearer realm="a2a-node"'), refused('Bearer realm="a2a-node", error="invalid_token"')]
  for (const path of ['', '/tasks', '/v1/tasks']) {
    const at = { method: path === '' ? 'POST' : 'GET', path }
    t.ok(JSON.stringify(listenerFault(none, at)).includes('"name":"AUTHENTICATION_REQUIRED"'), path)
    t.ok(JSON.stringify(listenerFault(wrong, at)).includes('"name":"INVALID_CREDENTIALS"'), path)
  }
  t.absent(
    JSON.stringify(
      listenerFault({ status: 404, code: 'NOT_FOUND', message: 'x' }, { method: 'GET', path: '/x' })
    ).includes('"name"')
  )
  const context = faultOf(
    new NodeError('INVALID_INPUT', 'the task is of another context', { data: { reason: 'CONTEXT' } })
  )
  t.ok(JSON.stringify(context.toRpc()).includes('"name":"CONTEXT_NOT_FOUND"'))
  t.ok(JSON.stringify(faultOf(new NodeError('INVALID_INPUT', 'x')).toRest()).includes('"name":"INVALID_MESSAGE"'))
})

test('a filter that a list does not know is refused by its name, not passed over', (t) => {
  for (const name of ['state', 'skill', 'lastUpdatedAfter', 'context_id']) {
    try {
      readList({ [name]: 'x', pageSize: 5 })
      t.fail(`${name} was passed over`)
    } catch (error) {
      t.ok(error instanceof A2AFault && error.message === `${name}: is no filter of a list`, name)
    }
  }
  t.is(readList({ contextId: 'c', pageSize: 5, tenant: '', metadata: {} }).contextId, 'c')
})
