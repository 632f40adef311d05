import test from 'brittle'
import fc from 'fast-check'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import { GatewayRoute } from '../../../../src/adapters/a2a/server/gateway-route.js'
import {
  activatedExtensions,
  requestedVersion,
  versionText
} from '../../../../src/adapters/a2a/server/service-params.js'
import type { Gateway } from '../../../../src/ports/gateway.js'
import type { Principal } from '../../../../src/ports/node-api.js'
import { holds } from '../../../support/holds.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { listening, TOKEN } from '../../http/raw-http.js'

const MUST = 'https://example.com/ext/must/v1'
const MAY = 'https://example.com/ext/may/v1'
const BY: Principal = {
  kind: 'token',
  name: 'token test',
  id: 'tok_1',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}

/** The gateway of an agent that requires an extension, over a real listener. */
async function demanding(t: Parameters<typeof listening>[0]): Promise<string> {
  const gateway = { list: () => Promise.resolve({ tasks: [], next: null, total: 0 }) } as unknown as Gateway
  const route = new GatewayRoute({
    gateway,
    clock: new ManualClock(),
    extensions: () => [{ uri: MUST, required: true }, { uri: MAY }],
    extendedCard: () => Promise.resolve({})
  })
  const { port } = await listening(t, [
    {
      prefix: '/agents/a',
      methods: ['GET', 'POST'],
      handle: (request, response, call) =>
        route.handle(
          { request, response },
          { principal: BY, query: call.query, signal: call.signal, readBody: () => call.readBody() },
          { agent: 'a', path: call.path.slice('/agents/a'.length) }
        )
    }
  ])
  return `http://127.0.0.1:${port}/agents/a`
}

test('an extension that a card requires must be named in the header: without it nothing is done, on each wire', async (t) => {
  const url = await demanding(t)
  const ask = async (extensions: Record<string, string>, method?: string) => {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      connection: 'close',
      ...extensions
    }
    const body =
      method === undefined
        ? {}
        : { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: {} }) }
    const response = await fetch(method === undefined ? `${url}/tasks` : url, { headers, ...body })
    return {
      response,
      json: (await response.json()) as { id?: unknown; error?: { code: unknown; details?: unknown[] } }
    }
  }
  for (const headers of [{}, { 'a2a-extensions': MAY }, { 'a2a-extensions': `${MUST}1` }] as Record<string, string>[]) {
    for (const method of ['ListTasks', 'tasks/list']) {
      const { json } = await ask(headers, method)
      t.alike([json.id, json.error?.code], [7, -32_008], method)
    }
    const { response, json } = await ask(headers)
    t.alike([response.status, json.error?.code], [400, 400])
    t.alike(json.error?.details?.[0], {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'EXTENSION_SUPPORT_REQUIRED',
      domain: 'a2a-protocol.org',
      metadata: { extensions: MUST }
    })
  }
  for (const name of ['a2a-extensions', 'x-a2a-extensions']) {
    const { response } = await ask({ [name]: `${MAY},${MUST}, ${MUST}` }, 'ListTasks')
    t.alike([response.status, response.headers.get(name)], [200, `${MUST}, ${MAY}`])
  }
})

test('any version and extensions of a client give a supported version, none or a refusal, and only offered extensions are activated', async (t) => {
  const text = fc.oneof(fc.string(), fc.constantFrom('1.0', '0.3', '1.0.3', '', ' 0.3 ', MUST, `${MAY},${MUST}`))
  await holds(
    t,
    fc.property(text, text, (header, query) => {
      const source = {
        headers: { 'a2a-version': header, 'a2a-extensions': header },
        query: `a=b&A2A-Version=${encodeURIComponent(query)}`
      }
      const uris = activatedExtensions(source, [{ uri: MUST }, { uri: MAY }])?.uris ?? []
      if (!uris.every((uri) => header.includes(uri))) return false
      try {
        const version = requestedVersion(source)
        return version === null ? versionText(source) === '' : versionText(source).startsWith(version)
      } catch (error) {
        return error instanceof A2AFault && error.kind === 'VERSION_NOT_SUPPORTED'
      }
    })
  )
})

test('A2A-Version may be a parameter of the query, also of a list, whose filters it is not', async (t) => {
  const url = await demanding(t)
  const headers = { authorization: `Bearer ${TOKEN}`, connection: 'close', 'a2a-extensions': MUST }
  const ask = async (query: string): Promise<number> => (await fetch(`${url}/tasks?${query}`, { headers })).status
  for (const name of ['A2A-Version', 'a2a-version', 'A2a-VERSION']) {
    t.is(await ask(`${name}=1.0`), 200, name)
    t.is(await ask(`pageSize=5&${name}=1.0`), 200, name)
    t.is(await ask(`${name}=7.0`), 400, 'a version that is not served')
  }
  t.is(await ask('A2A-Versions=1.0'), 400, 'another name is a filter')
})
