declare module 'protomux' {
  import type { Codec } from 'compact-encoding'
  import type NoiseSecretStream from '@hyperswarm/secret-stream'

  export interface MessageOptions<T> {
    /** Default raw bytes. A decoder that throws destroys the stream. */
    readonly encoding?: Codec<T>
    /** Handle errors inside: an error thrown here can kill the process. */
    readonly onmessage?: (message: T, channel: Channel) => unknown
  }

  export interface ChannelMessage<T> {
    readonly type: number
    /** False: wait for `ondrain`. Corked: always true. After close: false, and dropped. */
    send(message: T): boolean
  }

  export interface ChannelOptions<H = null> {
    readonly protocol: string
    readonly id?: Uint8Array | null
    readonly aliases?: readonly string[]
    /** Refuses (null) a second channel of this protocol and id. Default true. */
    readonly unique?: boolean
    readonly userData?: unknown
    readonly handshake?: Codec<H> | null
    readonly messages?: readonly MessageOptions<Uint8Array>[]
    readonly onopen?: (handshake: H, channel: Channel) => unknown
    readonly onclose?: (isRemote: boolean, channel: Channel) => unknown
    readonly ondestroy?: (channel: Channel) => unknown
    readonly ondrain?: (channel: Channel) => unknown
  }

  /** One protocol on the stream. The order of `addMessage` calls is the protocol. */
  export interface Channel {
    readonly protocol: string
    readonly id: Uint8Array | null
    readonly opened: boolean
    readonly closed: boolean
    readonly destroyed: boolean
    readonly drained: boolean
    readonly messages: readonly ChannelMessage<Uint8Array>[]
    userData: unknown
    open(handshake?: unknown): void
    close(): void
    addMessage<T = Uint8Array>(options: MessageOptions<T>): ChannelMessage<T>
    fullyOpened(): Promise<boolean>
    fullyClosed(): Promise<void>
    cork(): void
    uncork(): void
  }

  /** Channels over one framed stream. Iterating gives the channels that are open here. */
  export default class Protomux implements Iterable<Channel> {
    /** The mux of the stream, made when there is none. */
    static from(stream: NoiseSecretStream): Protomux
    static isProtomux(value: unknown): boolean
    readonly stream: NoiseSecretStream
    readonly drained: boolean
    readonly corked: number
    /** Null when the stream is destroyed, or the channel exists and must be unique. */
    createChannel<H = null>(options: ChannelOptions<H>): Channel | null
    opened(query: { readonly protocol: string; readonly id?: Uint8Array | null }): boolean
    getLastChannel(query: { readonly protocol: string; readonly id?: Uint8Array | null }): Channel | null
    /** Calls `notify` when the peer opens this protocol (any id when none is given and that id is unpaired). */
    pair(
      query: { readonly protocol: string; readonly id?: Uint8Array | null },
      notify: (id: Uint8Array | null) => unknown
    ): void
    unpair(query: { readonly protocol: string; readonly id?: Uint8Array | null }): void
    isIdle(): boolean
    cork(): void
    uncork(): void
    destroy(error?: Error): void
    [Symbol.iterator](): Iterator<Channel>
  }
}
