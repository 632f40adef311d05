import net from 'node:net'
import type { Assert } from 'brittle'
import type { HttpRefusal } from '../../../src/adapters/http/authority.js'
import {
  type HttpLimits,
  type HttpListener,
  type HttpListenerOptions,
  startHttpListener
} from '../../../src/adapters/http/listener.js'
import type { HttpRoute, TokenCall } from '../../../src/adapters/http/route.js'
import type { Principal } from '../../../src/ports/node-api.js'
import type { TokenGrant } from '../../../src/ports/token-api.js'

/** The token that a listener of a test knows. */
export const TOKEN = `a2a_${'k'.repeat(43)}`
/** Who has it. */
export const HOLDER: Principal = {
  kind: 'token',
  name: 'token test',
  tier: 2,
  sandboxId: null,
  scopes: ['read', 'send']
}

/** A listener of a test. */
export interface TestListener {
  readonly listener: HttpListener
  readonly port: number
  readonly refusals: HttpRefusal[]
  readonly faults: unknown[]
  /** Ends the token, as revoking does. */
  revoke(): void
  /** How many requests hold the token now. */
  holders(): number
}

/**
 * Listens on a free port of the loopback until the test ends. `slow`: checks tokens that take time; null for any other.
 */
export async function listening(
  t: Pick<Assert, 'teardown'>,
  routes: readonly HttpRoute[],
  {
    limits = {},
    slow,
    ...options
  }: Partial<Omit<HttpListenerOptions, 'limits'>> & {
    readonly limits?: Partial<HttpLimits>
    slow?(token: string): Promise<boolean> | null
  } = {}
): Promise<TestListener> {
  const listener = await startHttpListener({
    host: '127.0.0.1',
    port: 0,
    hosts: [],
    origins: [],
    limits: { drainMs: 300, ...limits },
    ...options
  })
  t.teardown(() => listener.close())
  const refusals: HttpRefusal[] = []
  const faults: unknown[] = []
  const holders = new Set<() => void>()
  let isGood = true
  const grant: TokenGrant = {
    principal: HOLDER,
    onEnd: (listen) => {
      holders.add(listen)
      return () => holders.delete(listen)
    }
  }
  listener.open({
    routes,
    admit: (token) => slow?.(token)?.then((is) => (is ? grant : null)) ?? (isGood && token === TOKEN ? grant : null),
    onRefusal: (one) => refusals.push(one),
    onFault: (error) => faults.push(error)
  })
  const revoke = (): void => {
    isGood = false
    for (const tell of [...holders]) tell()
  }
  return { listener, port: Number(new URL(listener.url).port), refusals, faults, revoke, holders: () => holders.size }
}

/** A connection that a test writes bytes to. */
export class RawConnection {
  readonly socket: net.Socket
  /** Resolves when the server has hung up, cleanly or not. */
  readonly closed: Promise<void>
  #text = ''
  #waiting: { readonly isThere: (text: string) => boolean; readonly resolve: () => void }[] = []

  constructor(t: Pick<Assert, 'teardown'>, port: number) {
    this.socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    this.socket.setEncoding('latin1')
    this.socket.on('error', () => {})
    this.socket.on('data', (chunk: string) => {
      this.#text += chunk
      this.#wake()
    })
    this.closed = new Promise((resolve) => {
      for (const name of ['end', 'close'] as const) this.socket.once(name, () => resolve())
    })
    void this.closed.then(() => this.#wake(true))
    t.teardown(() => this.socket.destroy())
  }

  /** What came so far. */
  get text(): string {
    return this.#text
  }

  write(text: string | Uint8Array): this {
    this.socket.write(text)
    return this
  }

  /** Waits until the text has come, or the server hung up; gives all that came. */
  async until(wanted: string | RegExp): Promise<string> {
    const isThere = (text: string): boolean => (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text))
    if (!isThere(this.#text)) await new Promise<void>((resolve) => this.#waiting.push({ isThere, resolve }))
    return this.#text
  }

  /** Waits for the end; gives all that came. */
  async end(): Promise<string> {
    await this.closed
    return this.#text
  }

  #wake(isOver = false): void {
    const ready = this.#waiting.filter(({ isThere }) => isOver || isThere(this.#text))
    this.#waiting = this.#waiting.filter((one) => !ready.includes(one))
    for (const { resolve } of ready) resolve()
  }
}

/** The head of a request. */
export function head(
  line: string,
  { port, headers = [] }: { readonly port: number; readonly headers?: readonly string[] }
): string {
  return `${[`${line} HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...headers].join('\r\n')}\r\n\r\n`
}

/** The header with the token that is known. */
export const WITH_TOKEN = `Authorization: Bearer ${TOKEN}`

/** The status of the first answer in a text. */
export function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0)
}

/** All statuses in a text, in order. */
export function statusesOf(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}

/** The error of the first answer of a text. Throws when it is no JSON. */
export function errorOf(text: string): { code: string; message: string } {
  const [, body = ''] = /\r\n\r\n([^]*)$/.exec(text) ?? []
  return (JSON.parse(body) as { error: { code: string; message: string } }).error
}

/** Answers with what it got. */
export function echoRoute(more: { readonly maxBodyBytes?: number } = {}): HttpRoute {
  return {
    path: '/echo',
    methods: ['POST'],
    ...more,
    handle: async (_request, response, call) => {
      const body = await call.readBody()
      response.writeHead(200, { 'content-length': body.length }).end(body)
    }
  }
}

/** A stream that never ends by itself; `opened` is told of its call. */
export function streamRoute(opened: (call: TokenCall) => void): HttpRoute {
  return {
    path: '/stream',
    methods: ['GET'],
    handle: (_request, response, call) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
      opened(call)
    }
  }
}

/** Sends a text and gives all that comes back until the server hangs up. */
export async function ask(t: Pick<Assert, 'teardown'>, port: number, text: string): Promise<string> {
  const connection = new RawConnection(t, port).write(text)
  return connection.end()
}
