import { lstatSync, type Stats } from 'node:fs'
import http from 'node:http'
import { dirname } from 'node:path'
import type { Duplex } from 'node:stream'
import type { AbortSignalLike } from '../../kit/clock.js'
import { type ErrorBody, messageOf, NodeError } from '../../kit/errors.js'
import { jsonFault } from '../../kit/json.js'
import type { CallName, CallOptions, Calls, NodeApi, WatchName, Watches } from '../../ports/node-api.js'
import type { CallerTerms } from './caller-terms.js'
import { answerMs, silentNode } from './answer-limit.js'
import {
  bodyMax,
  CALL_PATH,
  CALLER_PARAM,
  CONTROL_HOST,
  ERROR_LINE,
  fromWire,
  OPEN_PATH,
  PARAMS_LIMITS,
  TIMEOUT_HEADER,
  toWire,
  WATCH_PATH
} from './wire.js'

/**
 * Milliseconds until the answer to a call or watch must begin; null for no limit. `givenMs`: the `timeoutMs` of
 * {@link CallOptions}.
 */
export type AnswerLimit = (name: string, params: unknown, givenMs?: number) => number | null

/**
 * The NodeApi of a running node over its control socket. The first call connects.
 * @throws NodeError NODE_NOT_RUNNING when no node serves the socket or it ends in between; NO_PERMISSION for another
 * user's socket; TIMEOUT when no answer begins in time; CANCELED when the signal aborts
 */
export function connectControl(socketPath: string, limitOf: AnswerLimit = answerMs): NodeApi {
  return {
    async call<N extends CallName>(
      name: N,
      params: Calls[N]['params'],
      options: CallOptions = {}
    ): Promise<Calls[N]['result']> {
      const { signal, timeoutMs } = options
      const limitMs = limitOf(name, params, timeoutMs)
      const response = await send(socketPath, { path: CALL_PATH, name, params, signal, timeoutMs, limitMs })
      const text = await readAll(response, options.signal)
      return fromWire(parse(text)) as Calls[N]['result']
    },
    watch<N extends WatchName>(
      name: N,
      params: Watches[N]['params'],
      options: CallOptions = {}
    ): AsyncIterable<Watches[N]['item']> {
      const { signal, timeoutMs } = options
      const request = {
        path: WATCH_PATH,
        name,
        params,
        signal,
        timeoutMs,
        limitMs: limitOf(WATCH_PATH, params, timeoutMs)
      }
      return lines(socketPath, request) as AsyncIterable<Watches[N]['item']>
    }
  }
}

/** How long the answer to the opening of a stream may take. */
const OPEN_MS = 10_000

/** How a stream is opened. */
interface OpenOptions {
  /** The rights of its caller. Default: null, the operator's. */
  readonly terms?: CallerTerms | null
  /** Default: 10,000. */
  readonly limitMs?: number
}

/**
 * Opens a stream of raw bytes to a running node, e.g. of the protocol `mcp`. It ends when either side ends it.
 * @throws NodeError NODE_NOT_RUNNING, NO_PERMISSION, TIMEOUT; USAGE for a protocol that it does not serve
 */
export async function openControl(
  socketPath: string,
  protocol: string,
  { terms = null, limitMs = OPEN_MS }: OpenOptions = {}
): Promise<Duplex> {
  checkOwner(socketPath)
  const query = terms === null ? '' : `?${CALLER_PARAM}=${encodeURIComponent(JSON.stringify(terms))}`
  return await new Promise<Duplex>((resolve, reject) => {
    const headers = { host: CONTROL_HOST, 'content-type': 'application/json', connection: 'upgrade', upgrade: protocol }
    const outgoing = http.request({
      socketPath,
      path: OPEN_PATH + protocol + query,
      method: 'POST',
      headers,
      agent: false
    })
    const limit = setTimeout(() => void outgoing.destroy(silentNode(socketPath, { name: protocol, limitMs })), limitMs)
    outgoing.on('error', (error) => reject(failure(error, socketPath)))
    outgoing.once('close', () => clearTimeout(limit))
    outgoing.once('upgrade', (_response, socket, head) => {
      clearTimeout(limit)
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    outgoing.once('response', (response) => {
      readAll(response, undefined).then((text) => reject(errorOf(text, response.statusCode)), reject)
    })
    outgoing.end()
  })
}

interface ControlRequest {
  readonly path: string
  readonly name: string
  readonly params: unknown
  readonly signal: AbortSignalLike | undefined
  readonly timeoutMs: number | undefined
  readonly limitMs: number | null
}

/** Sends the request; resolves with a response of status 200. */
async function send(socketPath: string, request: ControlRequest): Promise<http.IncomingMessage> {
  const { path, name, params, signal, timeoutMs } = request
  if (signal?.aborted) throw canceled()
  // The encoders recurse, so the depth is checked first.
  const fault = jsonFault(params, PARAMS_LIMITS)
  if (fault !== null) throw new NodeError('USAGE', `the parameters: ${fault}`)
  const body = Buffer.from(JSON.stringify(toWire(params)))
  const max = bodyMax(name)
  if (body.length > max) throw tooLong(name, body.length, max)
  checkOwner(socketPath)
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const own = { host: CONTROL_HOST, 'content-type': 'application/json', 'content-length': body.length }
    const headers = timeoutMs === undefined ? own : { ...own, [TIMEOUT_HEADER]: timeoutMs }
    const outgoing = http.request({ socketPath, path: path + name, method: 'POST', headers, agent: false }, resolve)
    outgoing.on('error', (error) => reject(signal?.aborted ? canceled() : failure(error, socketPath)))
    const abort = (): void => void outgoing.destroy()
    const { limitMs, timeoutMs: givenMs } = request
    const limit =
      limitMs === null
        ? undefined
        : setTimeout(() => void outgoing.destroy(silentNode(socketPath, { name, limitMs, givenMs })), limitMs)
    signal?.addEventListener('abort', abort)
    outgoing.once('response', () => clearTimeout(limit))
    outgoing.once('close', () => {
      clearTimeout(limit)
      signal?.removeEventListener('abort', abort)
    })
    outgoing.end(body)
  })
  if (response.statusCode === 200) return response
  throw errorOf(await readAll(response, signal), response.statusCode)
}

async function readAll(response: http.IncomingMessage, signal: AbortSignalLike | undefined): Promise<string> {
  // Loaded on first use, not at the start of a command.
  const { answerText } = await import('./answer-lines.js')
  try {
    return await answerText(response as AsyncIterable<Uint8Array>)
  } catch (error) {
    if (signal?.aborted) throw canceled()
    throw error instanceof NodeError ? error : wentAway(error)
  } finally {
    response.destroy()
  }
}

async function* lines(socketPath: string, request: ControlRequest): AsyncGenerator<unknown, void, undefined> {
  const { signal } = request
  let response: http.IncomingMessage | null = null
  try {
    // Loaded on first use, not at the start of a command.
    const { answerLines } = await import('./answer-lines.js')
    response = await send(socketPath, request)
    for await (const line of answerLines(response as AsyncIterable<Uint8Array>))
      if (!signal?.aborted) yield itemOf(line)
  } catch (error) {
    if (signal?.aborted) return
    // A failure before the answer began is no lost connection.
    throw error instanceof NodeError || response === null ? error : wentAway(error)
  } finally {
    response?.destroy()
  }
}

function itemOf(line: string): unknown {
  const value = parse(line)
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, ERROR_LINE)) {
    throw NodeError.fromBody((value as Record<string, ErrorBody>)[ERROR_LINE] as ErrorBody)
  }
  return fromWire(value)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new NodeError('INTERNAL', 'the node answered with something that is no JSON', { cause: error })
  }
}

function errorOf(text: string, status: number | undefined): NodeError {
  const body = parse(text) as { error?: ErrorBody } | null
  if (typeof body?.error?.message === 'string') return NodeError.fromBody(body.error)
  return new NodeError('INTERNAL', `the node answered with status ${status ?? 0}`)
}

function tooLong(name: string, bytes: number, max: number): NodeError {
  const advice = name === 'swarm.start' ? 'fewer items or smaller files in one swarm' : 'a shorter input'
  const mebi = (count: number): string => `${Math.ceil((count / 1_048_576) * 10) / 10} MiB`
  return new NodeError('USAGE', `the input has ${mebi(bytes)}, more than the limit of ${mebi(max)}: give ${advice}`)
}

/**
 * A socket of another user, or in a directory that another user may write to, could be anybody's who poses as the node.
 */
function checkOwner(socketPath: string): void {
  const uid = process.getuid?.()
  if (uid === undefined) return
  const [dir, socket] = [statsOf(dirname(socketPath)), statsOf(socketPath)]
  const stranger = [dir, socket].find((one) => one !== null && one.uid !== uid)
  if (stranger !== null && stranger !== undefined) {
    throw new NodeError(
      'NO_PERMISSION',
      `${socketPath} belongs to user ${stranger.uid}, and this is user ${uid}: it is not trusted`,
      {
        next: [`sudo -u '#${stranger.uid}' a2a-node status`]
      }
    )
  }
  if (dir !== null && (!dir.isDirectory() || (dir.mode & 0o022) !== 0))
    throw new NodeError(
      'NO_PERMISSION',
      `${dirname(socketPath)} is not a directory of this user alone: its socket is not trusted`
    )
}

/** State of a path itself, without following links; null when it does not exist. */
function statsOf(file: string): Stats | null {
  try {
    return lstatSync(file)
  } catch {
    return null
  }
}

function failure(error: Error, socketPath: string): NodeError {
  if (error instanceof NodeError) return error
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTSOCK' || code === 'ENOTDIR') {
    return new NodeError('NODE_NOT_RUNNING', `no node answers at ${socketPath}`, { cause: error })
  }
  if (code === 'EACCES' || code === 'EPERM')
    return new NodeError('NO_PERMISSION', `may not use ${socketPath}`, { cause: error })
  return wentAway(error)
}

function wentAway(error: unknown): NodeError {
  return new NodeError('NODE_NOT_RUNNING', `the node ended before it answered (${messageOf(error)})`, { cause: error })
}

function canceled(): NodeError {
  return new NodeError('CANCELED', 'the call was given up')
}
