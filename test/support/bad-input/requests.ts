import { MAX_GATEWAY_BODY } from '../../../src/adapters/a2a/server/gateway-route.js'
import { type Cell, onHttp, refused, refusedCalls, type Row, tried } from './table.js'
import { type BadRequest, type HttpWire, rpc, saying, v1 } from './wires.js'

/** What a wire says of a body that is no request. */
const BAD_BODY: Readonly<Record<HttpWire, string>> = {
  'JSON-RPC 1.0': '200 -32600 INVALID_REQUEST',
  'JSON-RPC 0.3': '200 -32600 INVALID_REQUEST',
  'REST 1.0': '400 INVALID_ARGUMENT INVALID_REQUEST',
  'REST 0.3': '400 -32600 INVALID_REQUEST',
  facade: '400 invalid_request',
  'AG-UI': '400 INVALID_ARGUMENT INVALID_REQUEST'
}
const NO_JSON: Readonly<Record<HttpWire, string>> = {
  'JSON-RPC 1.0': '200 -32700 PARSE_ERROR',
  'JSON-RPC 0.3': '200 -32700 PARSE_ERROR',
  'REST 1.0': '400 INVALID_ARGUMENT PARSE_ERROR',
  'REST 0.3': '400 -32700 PARSE_ERROR',
  facade: '400 invalid_request',
  'AG-UI': '400 INVALID_ARGUMENT PARSE_ERROR'
}
const TOO_LARGE: Readonly<Record<HttpWire, string>> = {
  'JSON-RPC 1.0': '413 -32600 PAYLOAD_TOO_LARGE',
  'JSON-RPC 0.3': '413 -32600 PAYLOAD_TOO_LARGE',
  'REST 1.0': '413 INVALID_ARGUMENT PAYLOAD_TOO_LARGE',
  'REST 0.3': '413 -32600 PAYLOAD_TOO_LARGE',
  facade: '413 payload_too_large',
  'AG-UI': '413 INVALID_ARGUMENT PAYLOAD_TOO_LARGE'
}
const WRONG_TYPE: Readonly<Record<HttpWire, string>> = {
  'JSON-RPC 1.0': '415 -32005 CONTENT_TYPE_NOT_SUPPORTED',
  'JSON-RPC 0.3': '415 -32005 CONTENT_TYPE_NOT_SUPPORTED',
  'REST 1.0': '415 INVALID_ARGUMENT CONTENT_TYPE_NOT_SUPPORTED',
  'REST 0.3': '415 -32005 CONTENT_TYPE_NOT_SUPPORTED',
  facade: '415 unsupported_media_type',
  'AG-UI': '415 INVALID_ARGUMENT CONTENT_TYPE_NOT_SUPPORTED'
}
const NO_METHOD = '200 -32601 METHOD_NOT_FOUND'
const TYPES = [
  'text/plain',
  'text/html',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json-patch+json',
  'x'
]
const DEEP = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`
const UNREADABLE = ['', '{', 'nonsense', '{"jsonrpc":"2.0",}', '<html></html>', '{"a":"\u0000"}', "{'a':1}"]
const FORBIDDEN = [DEEP, '{"__proto__":{"id":"x"}}', '1', 'null', '"text"', 'true']

const bodies = (wire: HttpWire, all: readonly (string | object)[]): BadRequest[] =>
  all.map((body) => ({ ...saying(wire, 'x'), method: 'POST', body }))

/** A body one byte too large, announced. */
export const oversize: Row = {
  ...onHttp((wire) => refused(wire, TOO_LARGE[wire], [saying(wire, 'x'.repeat(MAX_GATEWAY_BODY))])),
  mesh: async (t, { mesh }) => {
    const it = await mesh()
    const body = Buffer.alloc(MAX_GATEWAY_BODY + 1, 0x20)
    const strike = it.forged({ type: 'request', id: 999, path: '/agents/talk', parameters: {}, body })
    t.is(strike, 'a part of a call that cannot be read', 'no honest member sends it: its link is cut')
  }
}

/** Bodies that are no JSON, or JSON beyond what is taken. */
export const malformed: Row = {
  ...onHttp((wire) => async (t, places) => {
    await tried(refused(wire, NO_JSON[wire], bodies(wire, UNREADABLE)))(t, places)
    await tried(refused(wire, BAD_BODY[wire], bodies(wire, FORBIDDEN.slice(0, 2))))(t, places)
    const isRun = wire === 'AG-UI'
    const other = isRun ? '400 INVALID_ARGUMENT INVALID_PARAMS' : BAD_BODY[wire]
    await tried(refused(wire, other, bodies(wire, FORBIDDEN.slice(2))))(t, places)
  }),
  mesh: async (t, places) => {
    await tried(
      refusedCalls(
        '-32700 PARSE_ERROR',
        UNREADABLE.map((body) => ({ body }))
      )
    )(t, places)
    await tried(
      refusedCalls(
        '-32600 INVALID_REQUEST',
        FORBIDDEN.map((body) => ({ body }))
      )
    )(t, places)
  }
}

/** Lists of requests. */
export const batches: Row = {
  ...onHttp((wire) => {
    const { body = {} } = saying(wire, 'x')
    return refused(
      wire,
      wire === 'AG-UI' ? '400 INVALID_ARGUMENT INVALID_PARAMS' : BAD_BODY[wire],
      bodies(wire, [[], [body], [body, body]])
    )
  }),
  mesh: refusedCalls('-32600 INVALID_REQUEST', [
    { body: [] },
    { body: [rpc('SendMessage', v1({ messageId: 'b' }, 'x')).body] }
  ])
}

/** Bodies that say they are something else. */
export const contentTypes: Row = {
  ...onHttp((wire) =>
    refused(
      wire,
      WRONG_TYPE[wire],
      TYPES.map((type) => ({ ...saying(wire, 'x'), headers: { 'content-type': type } }))
    )
  ),
  mesh: 'a call says no type: its body is JSON by the document of the binding'
}

const NAMES = [
  'NoSuchMethod',
  'constructor',
  '__proto__',
  'toString',
  '',
  'sendmessage',
  'SendMessage ',
  'x'.repeat(10_000)
]

/** Methods, paths and verbs that there are not. */
export const methods: Row = {
  'JSON-RPC 1.0': refused(
    'JSON-RPC 1.0',
    NO_METHOD,
    NAMES.map((name) => rpc(name, {}))
  ),
  'JSON-RPC 0.3': refused(
    'JSON-RPC 0.3',
    NO_METHOD,
    ['message/none', 'tasks/', '/', 'message/send/x'].map((name) => rpc(name, {}))
  ),
  'REST 1.0': verbs('REST 1.0', '', ['404 NOT_FOUND METHOD_NOT_FOUND', '405 UNIMPLEMENTED METHOD_NOT_ALLOWED']),
  'REST 0.3': verbs('REST 0.3', '/v1', ['404 -32601 METHOD_NOT_FOUND', '405 -32600 METHOD_NOT_ALLOWED']),
  facade: async (t, places) => {
    const at = (method: string, place: string): BadRequest => ({
      method,
      place,
      ...(method === 'POST' ? { body: {} } : {})
    })
    await tried(
      refused('facade', '404 not_found', [at('GET', '/v1/agents/talk/none'), at('POST', '/v1/agents/talk/run/x')])
    )(t, places)
    const wrong = [
      at('GET', '/agents/talk/run'),
      at('DELETE', '/agents/talk/stream'),
      at('PUT', '/agents/talk/run'),
      at('PATCH', '/agents')
    ]
    await tried(refused('facade', '405 method_not_allowed', wrong))(t, places)
  },
  'AG-UI': async (t, places) => {
    await tried(refused('AG-UI', '404 NOT_FOUND METHOD_NOT_FOUND', [{ place: '/agents/talk/agui' }]))(t, places)
    const wrong = [
      { place: '/agui' },
      { place: '/agui', method: 'DELETE' },
      { place: '/agents/talk/agui', method: 'PUT' }
    ]
    await tried(refused('AG-UI', '405 UNIMPLEMENTED METHOD_NOT_ALLOWED', wrong))(t, places)
  },
  mesh: async (t, places) => {
    await tried(
      refusedCalls(
        '-32601 METHOD_NOT_FOUND',
        NAMES.map((name) => ({ body: rpc(name, {}).body ?? '' }))
      )
    )(t, places)
    const paths = ['/', '/agents/', '/agents/talk/tasks', '/a2a/x', '/none']
    await tried(
      refusedCalls(
        '-32601 METHOD_NOT_FOUND',
        paths.map((path) => ({ path, body: rpc('ListTasks', {}).body ?? '' }))
      )
    )(t, places)
  }
}

function verbs(wire: HttpWire, below: string, [nothing, verb]: readonly [string, string]): Cell {
  return async (t, places) => {
    const at = (method: string, rest: string): BadRequest => ({
      method,
      place: `/agents/talk${below}${rest}`,
      ...(method === 'POST' ? { body: {} } : {})
    })
    const places404 = [
      at('GET', '/nothing'),
      at('POST', '/message:none'),
      at('GET', '/message:send'),
      at('DELETE', '/tasks/x'),
      at('POST', '/tasks/x:none'),
      at('GET', '/tasks/%'),
      at('GET', '/tasks/a/b/c')
    ]
    await tried(refused(wire, nothing, places404))(t, places)
    await tried(refused(wire, verb, [at('PUT', '/tasks/x'), at('PATCH', '/message:send'), at('PROPFIND', '/tasks')]))(
      t,
      places
    )
  }
}
