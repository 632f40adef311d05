declare module 'rache' {
  /** A cache of a number of values, whichever caches made of it hold them. */
  export default class Rache {
    constructor(options?: { readonly maxSize?: number })
    /** Values that all of them hold. */
    readonly globalSize: number
  }
}
