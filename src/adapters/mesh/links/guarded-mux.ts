import type { Codec } from 'compact-encoding'
import type { ChannelOptions, MessageOptions } from 'protomux'
import type Protomux from 'protomux'
import { messageOf } from '../../../kit/errors.js'
import { isMistake } from '../../../kit/package-fault.js'
import { CORE_PROTOCOLS } from './open-channels.js'
import { RequestTurns } from './request-turns.js'

type Handler<A extends readonly unknown[]> = (...args: A) => unknown

/**
 * Protects the process from packages on a multiplexer: a mistake in one of their handlers or decoders ends the stream,
 * where it would end the process. Requests for blocks take turns. Call it before anything opens a channel. `onMistake`:
 * called with the reason of each; the multiplexer ends the stream.
 */
export function guardMux(mux: Protomux, onMistake: (reason: string) => void): void {
  const create = mux.createChannel.bind(mux)
  const pair = mux.pair.bind(mux)
  const guarded = <A extends readonly unknown[]>(handler: Handler<A>): Handler<A> => guard(handler, onMistake)
  const turns = new RequestTurns({
    isDrained: () => mux.drained,
    onTooMany: onMistake,
    onFailed: (error) => mux.destroy(error instanceof Error ? error : new Error(messageOf(error)))
  })
  mux.createChannel = (options) => {
    const harmless = guardOptions(options, guarded)
    return create(CORE_PROTOCOLS.has(options.protocol) ? turns.apply(harmless) : harmless)
  }
  mux.pair = (query, notify) => pair(query, guarded(notify))
}

type Guarded = <A extends readonly unknown[]>(handler: Handler<A>) => Handler<A>

function guardOptions<H>(options: ChannelOptions<H>, guarded: Guarded): ChannelOptions<H> {
  const { onopen, onclose, ondestroy, ondrain, handshake, messages } = options
  return {
    ...options,
    ...(handshake ? { handshake: guardCodec(handshake, guarded) } : {}),
    ...(messages ? { messages: messages.map((message) => guardMessage(message, guarded)) } : {}),
    ...(onopen ? { onopen: guarded(onopen) } : {}),
    ...(onclose ? { onclose: guarded(onclose) } : {}),
    ...(ondestroy ? { ondestroy: guarded(ondestroy) } : {}),
    ...(ondrain ? { ondrain: guarded(ondrain) } : {})
  }
}

function guardMessage(
  { encoding, onmessage, ...rest }: MessageOptions<Uint8Array>,
  guarded: Guarded
): MessageOptions<Uint8Array> {
  return {
    ...rest,
    ...(encoding ? { encoding: guardCodec(encoding, guarded) } : {}),
    ...(onmessage ? { onmessage: guarded(onmessage) } : {})
  }
}

function guardCodec<T>(codec: Codec<T>, guarded: Guarded): Codec<T> {
  const decode = guarded((state: Parameters<Codec<T>['decode']>[0]) => codec.decode(state)) as Codec<T>['decode']
  return Object.assign(Object.create(codec) as Codec<T>, { decode })
}

/** The handler with its mistakes replaced by other errors, thrown or rejected. */
function guard<A extends readonly unknown[]>(handler: Handler<A>, onMistake: (reason: string) => void): Handler<A> {
  const harmless = (error: unknown): unknown => {
    if (!isMistake(error)) return error
    const reason = `a package failed at it: ${messageOf(error)}`
    onMistake(reason)
    return new Error(reason, { cause: error })
  }
  return (...args) => {
    try {
      const result = handler(...args)
      return result instanceof Promise
        ? result.catch((error: unknown) => Promise.reject(harmless(error) as Error))
        : result
    } catch (error) {
      throw harmless(error)
    }
  }
}
