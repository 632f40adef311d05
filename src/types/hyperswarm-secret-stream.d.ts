declare module '@hyperswarm/secret-stream' {
  /**
   * The stream below the encryption, of UDX or of a transport of ours. Fields are -1, 0 or null until it is connected.
   */
  export interface RawStream {
    readonly connected: boolean
    /** Smoothed round trip in milliseconds; 0 while unknown. */
    readonly rtt: number
    readonly mtu: number
    readonly inflight: number
    readonly bytesReceived: number
    readonly bytesTransmitted: number
    readonly remoteHost: string | null
    readonly remotePort: number
    readonly remoteFamily: number
    readonly localHost: string | null
    readonly localPort: number
    /** Of a transport of ours. */
    readonly path?: 'tcp' | 'websocket'
    /** The encrypted bytes of the peer. */
    on(event: 'data', listener: (bytes: Uint8Array) => void): this
    off(event: 'data', listener: (bytes: Uint8Array) => void): this
  }

  /** ed25519; 32 and 64 bytes. */
  export interface KeyPair {
    readonly publicKey: Uint8Array
    readonly secretKey: Uint8Array
  }

  interface StreamEvents {
    open: []
    /** The Noise handshake is done and the stream usable. */
    connect: []
    handshake: []
    data: [chunk: Uint8Array]
    message: [datagram: Uint8Array]
    drain: []
    end: []
    error: [error: Error]
    close: []
  }

  /** Options of a stream made by hand (tests, transports of our own). */
  export interface NoiseSecretStreamOptions {
    readonly keyPair?: KeyPair | Promise<KeyPair>
    readonly remotePublicKey?: Uint8Array
    readonly pattern?: 'XX' | 'IK'
    readonly autoStart?: boolean
    /** Milliseconds; 0 turns keep-alives off. */
    readonly keepAlive?: number
    readonly enableSend?: boolean
  }

  /** A framed-by-chunk, encrypted, authenticated duplex. `error` events without a listener kill the process. */
  export default class NoiseSecretStream {
    /** `rawStream` is any duplex of bytes; without one a bridge is made: pipe `stream.rawStream` by hand. */
    constructor(isInitiator: boolean, rawStream?: object | null, options?: NoiseSecretStreamOptions)
    static keyPair(seed?: Uint8Array): KeyPair

    readonly isInitiator: boolean
    /** Own static key; null before the handshake of a stream whose key pair is a promise. */
    readonly publicKey: Uint8Array
    /** The peer's static key; null before the handshake of an XX responder. */
    readonly remotePublicKey: Uint8Array
    /** 64 bytes, the same on both ends; null before the handshake. */
    readonly handshakeHash: Uint8Array
    readonly rawStream: RawStream
    readonly connected: boolean
    readonly destroyed: boolean
    readonly destroying: boolean
    readonly opened: Promise<boolean>
    readonly rawBytesRead: number
    readonly rawBytesWritten: number
    /** Stated length of the message that is collected, with its overhead; 0 between two messages. An internal field. */
    readonly _len: number
    /** Protomux keeps itself here. */
    userData: unknown

    /** Destroys the stream when nothing came for that long; 0 turns it off. */
    setTimeout(timeoutMs: number): void
    setKeepAlive(periodMs: number): void
    sendKeepAlive(): void
    /** False: wait for `drain`. */
    write(data: Uint8Array): boolean
    /** Resolves when all written bytes are acknowledged; false when the stream closed before. */
    flush(): Promise<boolean>
    end(data?: Uint8Array): void
    destroy(error?: Error): void
    pause(): this
    resume(): this
    pipe<T extends object>(destination: T): T
    on<E extends keyof StreamEvents>(event: E, listener: (...args: StreamEvents[E]) => void): this
    once<E extends keyof StreamEvents>(event: E, listener: (...args: StreamEvents[E]) => void): this
    off<E extends keyof StreamEvents>(event: E, listener: (...args: StreamEvents[E]) => void): this
    removeListener<E extends keyof StreamEvents>(event: E, listener: (...args: StreamEvents[E]) => void): this
  }
}
