import type { JSONRPCMessage, MessageExtraInfo, Transport, TransportSendOptions } from '@modelcontextprotocol/server'

/** A message and what came with it. */
interface ArrivedMessage {
  readonly message: JSONRPCMessage
  readonly extra: MessageExtraInfo | undefined
}

/**
 * A transport that has been started and whose first message has been looked at, to be given on as if nothing had happened:
 * what arrived meanwhile is told, in its order, to who starts it.
 */
export class BegunTransport implements Transport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Transport['onmessage']
  readonly #inner: Transport
  #waiting: ArrivedMessage[] | null = []

  constructor(inner: Transport) {
    this.#inner = inner
  }

  /** Takes a message of the transport below. */
  take(message: JSONRPCMessage, extra: MessageExtraInfo | undefined): void {
    if (this.#waiting === null) this.onmessage?.(message, extra)
    else this.#waiting.push({ message, extra })
  }

  start(): Promise<void> {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const { message, extra } of waiting) this.onmessage?.(message, extra)
    return Promise.resolve()
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    return this.#inner.send(message, options)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version)
  }

  setSupportedProtocolVersions(versions: string[]): void {
    this.#inner.setSupportedProtocolVersions?.(versions)
  }
}
