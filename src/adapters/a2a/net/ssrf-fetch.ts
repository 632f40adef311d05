import dns from 'node:dns'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import type { Clock } from '../../../kit/clock.js'
import { addressFault, type AddressPolicy, judgeAddress } from './address-guard.js'
import { networkFault, refusedAddress, RemoteFault, type RemoteFaultKind } from '../remote/remote-fault.js'

/** Most bytes of the headers of a response. */
export const MAX_ANSWER_HEADER_BYTES = 16_384
/** Most headers of a response. */
const MAX_ANSWER_HEADERS = 128

/** Limits of a response in time and size. */
export interface FetchLimits {
  /** Until the headers arrive, in milliseconds. */
  readonly headMs: number
  /** From the headers to the end of the body, unless it is an event stream; in milliseconds. */
  readonly bodyMs: number
  /** Longest silence within an event stream, in milliseconds. */
  readonly silenceMs: number
  readonly maxBytes: number
  /** Total of an event stream. */
  readonly maxStreamBytes: number
}

/** Resolves a host name to its IP addresses. */
export type Resolve = (name: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

/** Dependencies of {@link guardedFetch}. */
export interface GuardedFetchDeps {
  readonly policy: AddressPolicy
  readonly limits: FetchLimits
  readonly clock: Clock
  /** Default: the resolver of the system. */
  readonly resolve?: Resolve
}

/** The used subset of `fetch`: request bodies are text. */
export type GuardedFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * A `fetch` for untrusted addresses, within {@link judgeAddress}. The look-up of the connection itself checks the
 * resolved addresses, so a second answer of the resolver changes nothing. Each request has its own connection;
 * redirects and proxies are not used. Rejects with RemoteFault, or with an AbortError when its signal aborts.
 */
export function guardedFetch(deps: GuardedFetchDeps): GuardedFetch {
  return async (input, init = {}) => {
    const text = typeof input === 'string' ? input : input instanceof URL ? input.href : input.url
    const verdict = judgeAddress(text, deps.policy)
    if (!verdict.ok) throw refusedAddress(verdict.reason)
    const { body = null } = init
    if (body !== null && typeof body !== 'string') throw new RemoteFault('unsent', 'only text can be sent')
    const response = await new FetchExchange(deps, {
      url: verdict.url,
      isAllowed: verdict.isAllowed,
      init,
      body
    }).head()
    return response
  }
}

interface FetchRequest {
  readonly url: URL
  readonly isAllowed: boolean
  readonly init: RequestInit
  readonly body: string | null
}

/** One request with its response. */
class FetchExchange {
  readonly #deps: GuardedFetchDeps
  readonly #asked: FetchRequest
  #isConnected = false

  constructor(deps: GuardedFetchDeps, asked: FetchRequest) {
    this.#deps = deps
    this.#asked = asked
  }

  /** Resolves with the response as soon as its headers arrive. */
  head(): Promise<Response> {
    const { url, init, body } = this.#asked
    const { clock, limits } = this.#deps
    return new Promise((resolve, reject) => {
      const request = (url.protocol === 'https:' ? https : http).request(url, {
        method: init.method ?? 'GET',
        headers: this.#headers(),
        lookup: this.#lookup(),
        // No pool: a pooled connection could have been made under another policy.
        agent: false,
        maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
        ...(init.signal === null || init.signal === undefined ? {} : { signal: init.signal })
      })
      request.maxHeadersCount = MAX_ANSWER_HEADERS
      const timer = clock.after(limits.headMs, () => request.destroy(this.#late()))
      request.on('socket', (socket) => socket.once('connect', () => this.#connected(request, socket.remoteAddress)))
      request.once('error', (error) => {
        clock.clear(timer)
        reject(this.#fault(error))
      })
      request.once('response', (answer) => {
        clock.clear(timer)
        // Later errors are reported by the body.
        request.on('error', () => {})
        try {
          resolve(this.#answered(answer))
        } catch (error) {
          answer.destroy()
          reject(error)
        }
      })
      request.end(body ?? undefined)
    })
  }

  /** The final check, on the address of the connected socket, whatever the look-up returned. */
  #connected(request: http.ClientRequest, address: string | undefined): void {
    const fault = addressFault(address ?? '', this.#asked.isAllowed)
    if (fault === null) this.#isConnected = true
    else request.destroy(refusedAddress(fault))
  }

  #headers(): Record<string, string> {
    const headers = Object.fromEntries(new Headers(this.#asked.init.headers))
    // A compressed body could expand far beyond its size.
    return { 'user-agent': 'a2a-node', ...headers, 'accept-encoding': 'identity', connection: 'close' }
  }

  #lookup(): LookupFunction {
    const resolve = this.#deps.resolve ?? resolveByMachine
    return (name, options, done) => {
      resolve(name).then(
        (found) => {
          const [first] = found
          const fault = first === undefined ? `${name} has no address` : this.#refusedAmong(found)
          if (fault !== null || first === undefined) return done(refusedAddress(fault ?? ''), '', 0)
          if (options.all === true)
            return done(
              null,
              found.map((one) => ({ ...one }))
            )
          done(null, first.address, first.family)
        },
        (error: unknown) => done(error as NodeJS.ErrnoException, '', 0)
      )
    }
  }

  /** Checks all addresses: one private address among them refuses the whole answer. */
  #refusedAmong(found: Awaited<ReturnType<Resolve>>): string | null {
    for (const { address } of found) {
      const fault = addressFault(address, this.#asked.isAllowed)
      if (fault !== null) return fault
    }
    return null
  }

  #answered(answer: IncomingMessage): Response {
    const status = answer.statusCode ?? 0
    if (status >= 300 && status < 400 && status !== 304)
      throw new RemoteFault('refused', `it answers with a redirect (HTTP ${status}), and none is followed`)
    if (status < 200 || status > 599) throw new RemoteFault('answered', `it answers with HTTP ${status}`)
    const encoding = answer.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity')
      throw new RemoteFault('answered', `it answers in ${encoding}, which nobody asked for`)
    const headers = new Headers()
    for (const [name, value] of Object.entries(answer.headersDistinct))
      for (const one of value ?? []) headers.append(name, one)
    const isEmpty = status === 204 || status === 205 || status === 304
    if (isEmpty) answer.resume()
    return new Response(isEmpty ? null : this.#body(answer), {
      status,
      statusText: answer.statusMessage ?? '',
      headers
    })
  }

  #body(answer: IncomingMessage): ReadableStream<Uint8Array> {
    const { limits, clock } = this.#deps
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
    const most = isStream ? limits.maxStreamBytes : limits.maxBytes
    const timeMs = isStream ? limits.silenceMs : limits.bodyMs
    const late = (): void =>
      void answer.destroy(
        new RemoteFault('unknown', `its answer did not ${isStream ? 'go on' : 'end'} within ${timeMs} ms`)
      )
    let timer = clock.after(timeMs, late)
    let bytes = 0
    const count = (chunk: Uint8Array): void => {
      bytes += chunk.byteLength
      if (bytes > most)
        return void answer.destroy(new RemoteFault('answered', `its answer has more than ${most} bytes`))
      if (!isStream) return
      clock.clear(timer)
      timer = clock.after(timeMs, late)
    }
    answer.once('close', () => clock.clear(timer))
    return webStream(answer, count)
  }

  #fault(error: Error): Error {
    return error instanceof RemoteFault || isAbort(error) ? error : networkFault(this.#kind(), error)
  }

  #late(): RemoteFault {
    return new RemoteFault(this.#kind(), `timeout: no answer within ${this.#deps.limits.headMs} ms`)
  }

  #kind(): RemoteFaultKind {
    return this.#isConnected ? 'unknown' : 'unsent'
  }
}

/** The bytes of a response with backpressure; a canceled reader ends the connection. */
function webStream(answer: IncomingMessage, count: (chunk: Uint8Array) => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let isOver = false
        const end = (act: () => void): void => {
          if (!isOver) act()
          isOver = true
        }
        answer.on('data', (chunk: Buffer) => {
          count(chunk)
          if (isOver || answer.destroyed) return
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) <= 0) answer.pause()
        })
        answer.once('end', () => end(() => controller.close()))
        answer.once('error', (error) => end(() => controller.error(brokenOff(error))))
        answer.once('close', () =>
          end(() => controller.error(new RemoteFault('unknown', 'its answer broke off: the connection ended')))
        )
      },
      pull: () => void answer.resume(),
      cancel: () => void answer.destroy()
    },
    { highWaterMark: 65_536, size: (chunk) => chunk?.byteLength ?? 0 }
  )
}

function brokenOff(error: unknown): unknown {
  if (error instanceof RemoteFault || isAbort(error)) return error
  return networkFault('unknown', error, 'its answer broke off: ')
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

async function resolveByMachine(name: string): ReturnType<Resolve> {
  return await dns.promises.lookup(name, { all: true })
}
