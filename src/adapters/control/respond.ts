import type http from 'node:http'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { parseJson } from '../../kit/json.js'
import type { CallName, Calls, NodeApi, WatchName, Watches } from '../../ports/node-api.js'
import { CALLS, checkedApi, WATCHES } from './contract.js'
import { HTTP_STATUS } from './status.js'
import { bodyMax, CALL_PATH, ERROR_LINE, fromWire, PARAMS_LIMITS, TIMEOUT_HEADER, toWire, WATCH_PATH } from './wire.js'

/** A watch without a first item sends its headers after this time, so that the client knows that somebody is there. */
const HEAD_MS = 1000
const TIMEOUT_MAX_MS = 30 * 86_400_000

/** Which verb and name a request asks for. */
export type ControlRoute =
  | { readonly kind: 'call'; readonly name: CallName }
  | { readonly kind: 'watch'; readonly name: WatchName }

/** One request being answered. */
export interface ControlExchange {
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  readonly api: NodeApi
}

/** Finds the route of a URL. @throws NodeError USAGE when there is none. */
export function routeOf(url: string): ControlRoute {
  if (url.startsWith(CALL_PATH)) {
    const name = url.slice(CALL_PATH.length)
    if (Object.hasOwn(CALLS, name)) return { kind: 'call', name: name as CallName }
  } else if (url.startsWith(WATCH_PATH)) {
    const name = url.slice(WATCH_PATH.length)
    if (Object.hasOwn(WATCHES, name)) return { kind: 'watch', name: name as WatchName }
  }
  throw new NodeError('USAGE', 'the control API has no such path')
}

/** Runs a call and sends its result as JSON. @throws whatever the call throws */
export async function answerCall<N extends CallName>(
  { name }: { readonly name: N },
  exchange: ControlExchange
): Promise<void> {
  const { request, response, api } = exchange
  const params = (await readParams(request, name)) as Calls[N]['params']
  const result = await checkedApi(api).call(name, params, { signal: goneSignal(response), ...timeoutOf(request) })
  const body = Buffer.from(JSON.stringify(toWire(result)))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}

/** Runs a watch and sends its items line by line. @throws whatever the watch throws before its first item */
export async function answerWatch<N extends WatchName>(
  { name }: { readonly name: N },
  exchange: ControlExchange & { readonly closing: AbortSignal; readonly keepAliveMs: number }
): Promise<void> {
  const { request, response, api, closing } = exchange
  const params = (await readParams(request, name)) as Watches[N]['params']
  const gone = goneSignal(response)
  const writer = new LineWriter(response, gone)
  const keepAlive = setInterval(() => writer.blank(), exchange.keepAliveMs)
  const head = setTimeout(() => writer.begin(), HEAD_MS)
  const stopTimers = (): void => {
    clearInterval(keepAlive)
    clearTimeout(head)
  }
  // Also for a watch that does not heed its signal.
  gone.addEventListener('abort', stopTimers)
  const over = eitherAborts(gone, closing)
  try {
    for await (const item of checkedApi(api).watch(name, params, { signal: over.signal })) {
      await writer.write(item)
      if (gone.aborted) return
    }
    if (closing.aborted) throw new NodeError('NODE_NOT_RUNNING', 'the node stopped')
    writer.end()
  } catch (error) {
    if (!writer.started) throw error
    await writer.write({ [ERROR_LINE]: asNodeError(error).toBody() })
    writer.end()
  } finally {
    stopTimers()
    over.release()
  }
}

/**
 * Aborts with either signal. AbortSignal.any would retain its result, and everything it references, as long as it has
 * listeners.
 */
function eitherAborts(one: AbortSignal, other: AbortSignal): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  for (const signal of [one, other]) {
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
  }
  return {
    signal: controller.signal,
    release: () => [one, other].forEach((signal) => signal.removeEventListener('abort', abort))
  }
}

/** Sends an error body with the status of its code; after the first byte of an answer it can only cut. */
export function answerError(response: http.ServerResponse, thrown: unknown, status?: number): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const error = asNodeError(thrown)
  const body = Buffer.from(JSON.stringify({ error: toWire(error.toBody()) }))
  response.writeHead(status ?? HTTP_STATUS[error.code], {
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close'
  })
  response.end(body)
}

/** Aborts when the client hung up before the answer was complete. */
function goneSignal(response: http.ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => controller.abort())
  return controller.signal
}

function timeoutOf({ headers }: http.IncomingMessage): { timeoutMs?: number } {
  const given = headers[TIMEOUT_HEADER]
  const timeoutMs = typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : 0
  return timeoutMs >= 1 && timeoutMs <= TIMEOUT_MAX_MS ? { timeoutMs } : {}
}

async function readParams(request: http.IncomingMessage, name: string): Promise<unknown> {
  const text = await readText(request, bodyMax(name))
  const parsed = parseJson(text, PARAMS_LIMITS)
  if (!parsed.ok) throw new NodeError('USAGE', `the parameters: ${parsed.reason}`)
  return fromWire(parsed.value)
}

async function readText(request: http.IncomingMessage, max: number): Promise<string> {
  const tooLarge = new NodeError('PAYLOAD_TOO_LARGE', `the parameters are larger than ${max} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > max) throw tooLarge
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > max) throw tooLarge
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/**
 * Writes NDJSON and honours backpressure. Headers go with the first line at the latest; an error before them has its
 * status.
 */
class LineWriter {
  readonly #response: http.ServerResponse
  readonly #gone: AbortSignal

  constructor(response: http.ServerResponse, gone: AbortSignal) {
    this.#response = response
    this.#gone = gone
  }

  get started(): boolean {
    return this.#response.headersSent
  }

  async write(item: unknown): Promise<void> {
    if (this.#gone.aborted) return
    this.#head()
    if (this.#response.write(`${JSON.stringify(toWire(item))}\n`)) return
    const response = this.#response
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        response.off('drain', goOn).off('close', goOn)
        resolve()
      }
      response.on('drain', goOn).on('close', goOn)
    })
  }

  /** Sends the headers alone. */
  begin(): void {
    if (this.#gone.aborted) return
    this.#head()
    this.#response.flushHeaders()
  }

  /** A keep-alive line; not while the client is behind anyway. */
  blank(): void {
    if (this.#gone.aborted || this.#response.writableNeedDrain) return
    this.#head()
    this.#response.write('\n')
  }

  end(): void {
    this.#head()
    this.#response.end()
  }

  #head(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  }
}
