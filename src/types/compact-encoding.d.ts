declare module 'compact-encoding' {
  export interface State {
    start: number
    end: number
    buffer: Uint8Array | null
  }
  export interface Codec<T> {
    preencode(state: State, value: T): void
    encode(state: State, value: T): void
    decode(state: State): T
  }
  const c: {
    state(start?: number, end?: number, buffer?: Uint8Array | null): State
    uint: Codec<number>
    uint8: Codec<number>
    uint16: Codec<number>
    uint32: Codec<number>
    uint64: Codec<number>
    string: Codec<string>
    utf8: Codec<string>
    bool: Codec<boolean>
    buffer: Codec<Uint8Array | null>
    raw: Codec<Uint8Array>
    fixed32: Codec<Uint8Array>
    fixed64: Codec<Uint8Array>
    none: Codec<null>
    ipv4Address: Codec<{ readonly host: string; readonly port: number }>
    array<T>(codec: Codec<T>): Codec<T[]>
    encode<T>(codec: Codec<T>, value: T): Uint8Array
    decode<T>(codec: Codec<T>, buffer: Uint8Array): T
  }
  export default c
}
