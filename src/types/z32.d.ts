declare module 'z32' {
  const z32: { encode(bytes: Uint8Array): string; decode(text: string): Uint8Array }
  export default z32
}
