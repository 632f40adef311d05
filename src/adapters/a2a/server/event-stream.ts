import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../kit/clock.js'
import type { StreamItem } from './operations.js'

/** How often a stream on which nothing happens says that it is there, in milliseconds. */
export const HEARTBEAT_MS = 15_000
/** Bytes that a client may be behind; then nothing more is sent until it has read them. */
export const MAX_BEHIND_BYTES = 1_048_576
/** How long a client that is behind is waited for, in milliseconds; then its stream is cut. */
export const BEHIND_WAIT_MS = 60_000

/** What answering with a stream needs. */
export interface EventStreamDeps {
  readonly clock: Clock
  /** The `data` of an item. */
  encode(value: object): object
  /** The `data` that tells that the stream broke off. */
  encodeFault(error: unknown): object
}

/** Answers with server-sent events. Resolves when the stream has ended; never rejects. */
export async function answerStream(response: ServerResponse, items: AsyncIterable<StreamItem>, deps: EventStreamDeps): Promise<void> {
  const { clock, encode, encodeFault } = deps
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    // Proxies that gather answers would hold the stream up.
    'x-accel-buffering': 'no'
  })
  response.flushHeaders()
  const timer = clock.every(HEARTBEAT_MS, () => response.write(': still here\n\n'))
  try {
    for await (const { id, event, value } of items) {
      if (response.destroyed) return
      response.write(textOf({ id, event, value: encode(value) }))
      // One item alone may be larger, and what is told again comes all at once: also who reads fast is behind then.
      if (response.writableLength > MAX_BEHIND_BYTES && !(await drained(response, clock))) return void response.destroy()
    }
  } catch (error) {
    response.write(`data: ${JSON.stringify(encodeFault(error))}\n\n`)
  } finally {
    clock.clear(timer)
    response.end()
  }
}

/** Resolves true when a client has read all, false when it has not in time or has hung up. */
function drained(response: ServerResponse, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve(false)
    const timer = clock.after(BEHIND_WAIT_MS, () => done(false))
    const onDrain = (): void => done(true)
    const onClose = (): void => done(false)
    response.on('drain', onDrain).on('close', onClose)
    function done(isDrained: boolean): void {
      clock.clear(timer)
      response.off('drain', onDrain).off('close', onClose)
      resolve(isDrained)
    }
  })
}

/** An event as server-sent events have it. */
function textOf({ id, event, value }: { readonly id: number | null; readonly event: string | undefined; readonly value: object }): string {
  return `${event === undefined ? '' : `event: ${event}\n`}${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`
}
