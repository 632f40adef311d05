import type { ServerResponse } from 'node:http'
import type { Clock } from '../../../kit/clock.js'
import type { StreamItem } from './operations.js'

/** Interval of heartbeats on a stream, in milliseconds. */
export const HEARTBEAT_MS = 15_000
/** Most unread bytes of a client; beyond it sending pauses. */
export const MAX_BEHIND_BYTES = 1_048_576
/** Longest pause for a slow client, in milliseconds; then its stream is cut. */
export const BEHIND_WAIT_MS = 60_000

/** Clock and encoders of {@link answerStream}. */
export interface EventStreamDeps {
  readonly clock: Clock
  /** The `data` of an item. */
  encode(value: object): object
  /** The `data` of the last event when the stream fails. */
  encodeFault(error: unknown): object
}

/** Answers with server-sent events. Resolves when the stream has ended; never rejects. */
export async function answerStream(
  response: ServerResponse,
  items: AsyncIterable<StreamItem>,
  deps: EventStreamDeps
): Promise<void> {
  const { clock, encode, encodeFault } = deps
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    // Proxies that buffer responses would delay the stream.
    'x-accel-buffering': 'no'
  })
  response.flushHeaders()
  const timer = clock.every(HEARTBEAT_MS, () => response.write(': still here\n\n'))
  try {
    for await (const { id, event, value } of items) {
      if (response.destroyed) return
      response.write(textOf({ id, event, value: encode(value) }))
      // One item may be larger, and replayed events come at once: fast readers are behind then, too.
      if (response.writableLength > MAX_BEHIND_BYTES && !(await drained(response, clock)))
        return void response.destroy()
    }
  } catch (error) {
    response.write(`data: ${JSON.stringify(encodeFault(error))}\n\n`)
  } finally {
    clock.clear(timer)
    response.end()
  }
}

/** An answer that its client may read slowly. */
export interface SlowAnswer {
  readonly destroyed: boolean
  on(event: 'drain' | 'close', listener: () => void): SlowAnswer
  off(event: 'drain' | 'close', listener: () => void): SlowAnswer
}

/** Resolves true when the client has read all; false after {@link BEHIND_WAIT_MS} or when it hung up. */
export function drained(response: SlowAnswer, clock: Clock): Promise<boolean> {
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

/** Encodes a server-sent event. */
function textOf({
  id,
  event,
  value
}: {
  readonly id: number | null
  readonly event: string | undefined
  readonly value: object
}): string {
  return `${event === undefined ? '' : `event: ${event}\n`}${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`
}
