declare module 'blind-pairing' {
  import type Hyperswarm from 'hyperswarm'
  import type { NoiseStream } from 'hyperswarm'
  import type Protomux from 'protomux'

  /** The part of a Hyperswarm that is used. */
  export interface SwarmOfPairing extends Pick<Hyperswarm, 'dht' | 'join' | 'flush'> {
    readonly connections: Iterable<NoiseStream>
    on(event: 'connection', listener: (stream: NoiseStream) => void): unknown
    removeListener(event: 'connection', listener: (stream: NoiseStream) => void): unknown
  }

  /** Data that the confirming side hands over, signed with the invite's key. */
  export interface AdditionalData {
    readonly data: Uint8Array
    readonly signature: Uint8Array
  }

  /** A fresh invite. `invite` goes to the newcomer; id, publicKey and additional into the record. */
  export interface CreatedInvite {
    /** 32 bytes. */
    readonly id: Uint8Array
    readonly invite: Uint8Array
    readonly seed: Uint8Array
    readonly publicKey: Uint8Array
    readonly additional: AdditionalData | null
    readonly discoveryKey: Uint8Array
    /** Unix milliseconds in whole seconds; 0 is never. */
    readonly expires: number
  }

  export interface DecodedInvite {
    readonly id: Uint8Array
    readonly seed: Uint8Array
    readonly discoveryKey: Uint8Array | null
    readonly expires: number
  }

  /** A newcomer's request as a member sees it. Nothing of it is readable before `open`. */
  export interface MemberRequest {
    readonly inviteId: Uint8Array
    readonly discoveryKey: Uint8Array
    /** Null before `open`. */
    readonly userData: Uint8Array | null
    readonly publicKey: Uint8Array | null
    readonly session: Uint8Array | null
    /** Decrypts and verifies with the invite's public key. @throws Error when it does not fit. */
    open(publicKey: Uint8Array): Uint8Array
    confirm(answer: {
      readonly key: Uint8Array
      readonly encryptionKey?: Uint8Array | null
      readonly additional?: AdditionalData | null
    }): void
    /** 1 rejected, 2 used, 3 expired; other numbers travel as they are. Needs `open` first. */
    deny(options?: { readonly status?: number }): void
  }

  /** Data for a candidate. */
  export interface PairedData {
    readonly key: Uint8Array
    readonly encryptionKey: Uint8Array | null
    readonly data: Uint8Array | null
  }

  /** Answers requests until closed. */
  export interface Member {
    announce(): Promise<void>
    flushed(): Promise<boolean | undefined>
    refresh(): Promise<void>
    ready(): Promise<void>
    close(): Promise<void>
  }

  /** Asks until paired or closed. */
  export interface Candidate {
    readonly request: CandidateRequest
    readonly paired: PairedData | null
    /** Resolves when paired, or with null when closed before. Null until `ready`. */
    readonly pairing: Promise<PairedData | null> | null
    readonly closed: boolean
    refresh(): Promise<void>
    ready(): Promise<void>
    close(): Promise<void>
  }

  /** `rejected` carries an error whose `code` is PAIRING_REJECTED, INVITE_USED or INVITE_EXPIRED. */
  export interface CandidateRequest {
    readonly inviteId: Uint8Array
    readonly discoveryKey: Uint8Array
    readonly id: Uint8Array
    /** The last readable answer; status 0 is a confirmation. */
    readonly response?: { readonly status: number }
    on(event: 'rejected', listener: (error: Error & { readonly code?: string }) => void): this
    on(event: 'accepted', listener: (paired: PairedData) => void): this
    off(event: 'rejected' | 'accepted', listener: (...args: never[]) => void): this
  }

  /** A topic of members and candidates, with its channels. */
  export interface Topic {
    readonly discoveryKey: Uint8Array
  }

  export default class BlindPairing {
    constructor(swarm: SwarmOfPairing, options?: { readonly poll?: number })
    /** Invites to the holder of `key`. `expires` in unix milliseconds; `data` is signed as additional data. */
    static createInvite(
      key: Uint8Array,
      options?: {
        readonly expires?: number
        readonly seed?: Uint8Array
        readonly data?: Uint8Array
        readonly discoveryKey?: Uint8Array
      }
    ): CreatedInvite
    /** @throws Error for bytes that are no invite. */
    static decodeInvite(invite: Uint8Array): DecodedInvite
    static createRequest(invite: Uint8Array, userData: Uint8Array): CandidateRequest
    readonly swarm: SwarmOfPairing
    readonly closed: boolean

    addMember(options: {
      readonly discoveryKey: Uint8Array
      /** Announce at once. Default true; without it only streams that are there are served. */
      readonly announce?: boolean
      /** Confirm or deny inside; a rejection of the promise is swallowed. */
      readonly onadd: (request: MemberRequest) => Promise<void> | void
    }): Member
    addCandidate(options: {
      readonly invite: Uint8Array
      readonly userData: Uint8Array
      readonly discoveryKey?: Uint8Array
      readonly onadd?: (paired: PairedData) => Promise<void> | void
    }): Candidate
    suspend(): Promise<void>
    resume(): void
    refresh(): Promise<void>
    ready(): Promise<void>
    close(): Promise<void>
    /** Opens the channels of all topics on a new stream. */
    protected _onconnection(stream: NoiseStream): void
    /** Opens the channel of a topic on a stream; null: the peer opened it. */
    protected _attachToMuxer(mux: Protomux, discoveryKey: Uint8Array, topic: Topic | null): void
  }
}
