import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from './http-error.js'

/** Limits for reading the rest of an answered request. */
export interface DrainLimits {
  /** Milliseconds for which its connection stays open at most. */
  readonly drainMs: number
  /** Bytes that are read and thrown away; what comes beyond them waits for the end of the time. */
  readonly drainBytes: number
}

/** The size that a request announces; 0 for none. A size that no number holds is infinite. */
export function announcedBytes({ headers }: Pick<IncomingMessage, 'headers'>): number {
  const text = headers['content-length']
  return text === undefined ? 0 : /^\d{1,15}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
}

/** Is the body not yet read to its end? */
export function isSending(request: IncomingMessage): boolean {
  return !request.complete && (announcedBytes(request) > 0 || request.headers['transfer-encoding'] !== undefined)
}

/** Reads a body of at most `maxBytes` bytes. @throws HttpError 413, and 400 when it breaks off */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  // A destroyed request emits no further event.
  const fault = announcedBytes(request) > maxBytes ? new TooLarge(maxBytes) : request.destroyed ? brokenOff() : null
  const reading = fault === null ? reader(request, maxBytes, () => unwanted(reading)) : Promise.reject<Buffer>(fault)
  if (fault !== null) unwanted(reading)
  return reading
}

/** A body that is read within bounds. */
export interface BoundedReading {
  /** Null when the body is larger, breaks off or comes too slowly, or at `stop`. Never rejects. */
  readonly body: Promise<Buffer | null>
  stop(): void
}

/** Reads a body of at most `maxBytes` bytes for at most `timeoutMs` milliseconds. */
export function readWithin(
  request: IncomingMessage,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number }
): BoundedReading {
  let stop = (): void => {}
  const stopped = new Promise<null>((resolve) => {
    stop = () => resolve(null)
  })
  const timer = setTimeout(() => stop(), timeoutMs)
  const read = readBody(request, maxBytes).catch(() => null)
  return { body: Promise.race([read, stopped]).finally(() => clearTimeout(timer)), stop: () => stop() }
}

/** Does a request announce JSON? */
export function isJson({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /^application\/(?:[\w.+-]{1,64}\+)?json\s*(?:;|$)/i.test(headers['content-type'] ?? '')
}

/** The reader reports the fault; a body without a reader reports none. */
function unwanted(reading: Promise<unknown>): void {
  reading.catch(() => {})
}

function reader(request: IncomingMessage, maxBytes: number, onFault: () => void): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // null: it is known what becomes of it.
    let chunks: Buffer[] | null = []
    let bytes = 0
    const fail = (error: HttpError): void => {
      chunks = null
      onFault()
      reject(error)
    }
    request.on('data', (chunk: Buffer) => {
      if (chunks === null) return
      bytes += chunk.length
      chunks.push(chunk)
      if (bytes <= maxBytes) return
      // Nothing may be lost before somebody reads past the rest.
      request.pause()
      fail(new TooLarge(maxBytes, Buffer.concat(chunks)))
    })
    request.on('end', () => {
      if (chunks === null) return
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
      chunks = null
    })
    // After an error, too.
    request.on('close', () => {
      if (chunks !== null) fail(brokenOff())
    })
  })
}

function brokenOff(): HttpError {
  return new HttpError(400, { code: 'INCOMPLETE', message: 'the body breaks off' })
}

/** The answer to a body that is too large. */
export class TooLarge extends HttpError {
  /** The part of the body that was read before; the request is paused behind it. */
  readonly read: Buffer

  constructor(maxBytes: number, read = Buffer.alloc(0)) {
    super(413, {
      code: 'PAYLOAD_TOO_LARGE',
      message: `the body is larger than ${maxBytes} bytes`,
      // Nothing behind the body is run.
      headers: { connection: 'close' }
    })
    this.read = read
  }
}

/**
 * Answers with an error, also while the client still sends. The rest of the body is read and dropped for a while:
 * closing a connection with unread bytes makes the system drop the answer.
 */
export function answerError(
  request: IncomingMessage,
  response: ServerResponse,
  to: { readonly error: HttpError; readonly limits: DrainLimits }
): void {
  const { error, limits } = to
  if (response.headersSent || response.destroyed) return void response.destroy()
  const more = isSending(request)
  const { body } = error
  response.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': body.length,
    'cache-control': 'no-store',
    ...(more ? { connection: 'close' } : {}),
    ...error.headers
  })
  if (!more) return void response.end(body)
  response.write(body)
  drain(request, limits, () => response.end())
}

/**
 * Reads what is left of a request and throws it away, then calls back: when it ended, broke off, or its time is over.
 */
export function drain(request: IncomingMessage, { drainMs, drainBytes }: DrainLimits, done: () => void): void {
  let left = drainBytes
  const timer = setTimeout(finish, drainMs)
  request.on('data', count).on('end', finish).on('close', finish).on('error', finish)
  request.resume()
  function count(chunk: Buffer): void {
    left -= chunk.length
    // The paused connection takes no more bytes, and the client can read the answer.
    if (left < 0) request.pause()
  }
  function finish(): void {
    clearTimeout(timer)
    request.off('data', count).off('end', finish).off('close', finish)
    done()
  }
}
