import type { JSONRPCMessage, MessageExtraInfo, Transport, TransportSendOptions } from '@modelcontextprotocol/server'

/** A message with its extra information. */
interface ArrivedMessage {
  readonly message: JSONRPCMessage
  readonly extra: MessageExtraInfo | undefined
}

/**
 * A transport that was started to read its first message, and is passed on as if it were new. Messages received before
 * are delivered in order when it is started.
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
