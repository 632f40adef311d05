declare module 'b4a' {
  type Encoding = 'utf8' | 'utf-8' | 'hex' | 'base64' | 'ascii'
  const b4a: {
    from(text: string, encoding?: Encoding): Uint8Array
    from(bytes: Uint8Array | readonly number[]): Uint8Array
    toString(bytes: Uint8Array, encoding?: Encoding): string
    alloc(size: number): Uint8Array
    allocUnsafe(size: number): Uint8Array
    concat(parts: readonly Uint8Array[]): Uint8Array
    equals(a: Uint8Array, b: Uint8Array): boolean
    compare(a: Uint8Array, b: Uint8Array): -1 | 0 | 1
    byteLength(text: string): number
  }
  export default b4a
}
