import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { isRecord } from '../../../src/kit/json.js'
import type { Teardown } from '../../support/tmp.js'

/** External agents that answer as a case wants, in JSON-RPC of 1.0. */
export interface PeerAgent {
  readonly host: string
  /** URL of the card of `golden`, which has no streams, or of `wide`, which has an extended card. */
  cardOf(name: string): string
  /** Answers of a case, by operation. The text of its first message is `case <nonce>`. */
  teach(nonce: string, answers: Readonly<Record<string, unknown>>): void
  /** The operations that a case led to; those without a message or task count for all cases. */
  askedOf(nonce: string): readonly string[]
}

const NAMES = ['golden', 'wide']

/** Starts them; they are gone when the test ends. */
export async function peerAgent(t: Teardown): Promise<PeerAgent> {
  const answers = new Map<string, Readonly<Record<string, unknown>>>()
  const asked: { readonly nonce: string | null; readonly method: string }[] = []
  /** The case of each remote task. */
  const tasks = new Map<string, string>()
  const server = http.createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat((await request.toArray()) as Buffer[]).toString('utf8')
      const [, name = ''] = (request.url ?? '').split('/')
      const json = body === '' ? cardOf(name, `http://${request.headers.host ?? ''}`) : answer(JSON.parse(body))
      response.setHeader('content-type', 'application/json').end(JSON.stringify(json))
    })()
  })

  function answer(request: { id: unknown; method: string; params?: unknown }): object {
    const nonce = nonceOf(request.params, tasks)
    asked.push({ nonce, method: request.method })
    const given = nonce === null ? undefined : answers.get(nonce)?.[request.method]
    const head = { jsonrpc: '2.0', id: request.id }
    if (given === undefined) return { ...head, error: { code: -32_601, message: `no answer to ${request.method}` } }
    if (!isRecord(given)) throw new Error('an answer is an object')
    if (nonce !== null && isRecord(given['task'])) tasks.set(String(given['task']['id']), nonce)
    return 'error' in given ? { ...head, ...given } : { ...head, result: given }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    host,
    cardOf: (name) => `http://${host}/${name}/.well-known/agent-card.json`,
    teach: (nonce, given) => void answers.set(nonce, given),
    askedOf: (nonce) => asked.filter((one) => one.nonce === null || one.nonce === nonce).map(({ method }) => method)
  }
}

/** The case of a request: by the text of its message, or by its task. */
function nonceOf(params: unknown, tasks: ReadonlyMap<string, string>): string | null {
  if (!isRecord(params)) return null
  const [, nonce = null] = /"text":"case ([\w-]+)"/.exec(JSON.stringify(params)) ?? []
  return nonce ?? tasks.get(String(params['id'])) ?? null
}

function cardOf(name: string, origin: string): object {
  if (!NAMES.includes(name)) return {}
  return {
    name,
    description: 'Answers as a case wants.',
    version: '1.0.0',
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: name === 'wide' },
    supportedInterfaces: [{ url: `${origin}/${name}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'answer', name: 'Answer', description: 'Answers.', tags: [] }]
  }
}
