import type { ServerResponse } from 'node:http'
import type { Clock } from '../../kit/clock.js'
import type { StreamItem } from './operations.js'

/** How often a stream on which nothing happens says that it is there, in milliseconds. */
export const HEARTBEAT_MS = 15_000
/** Bytes that a client may be behind; a stream of one that reads no faster is ended, and it may come again from where it was. */
export const MAX_BEHIND_BYTES = 1_048_576

/** What answering with a stream needs. */
export interface EventStreamParts {
  readonly clock: Clock
  /** The `data` of an item. */
  encode(value: object): object
  /** The `data` that tells that the stream broke off. */
  encodeFault(error: unknown): object
}

/** Answers with server-sent events. Resolves when the stream has ended; never rejects. */
export async function answerStream(response: ServerResponse, items: AsyncIterable<StreamItem>, parts: EventStreamParts): Promise<void> {
  const { clock, encode, encodeFault } = parts
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
      response.write(`${event === undefined ? '' : `event: ${event}\n`}id: ${id}\ndata: ${JSON.stringify(encode(value))}\n\n`)
      if (response.writableLength > MAX_BEHIND_BYTES) return
    }
  } catch (error) {
    response.write(`data: ${JSON.stringify(encodeFault(error))}\n\n`)
  } finally {
    clock.clear(timer)
    response.end()
  }
}
