/** Undoes, last first, what a start has done so far; also the way a node stops. */
export class Unwind {
  readonly #steps: { readonly name: string; readonly run: () => Promise<unknown> }[] = []
  readonly #onError: (name: string, error: unknown) => void

  /** `onError`: told of each step that fails. */
  constructor(onError: (name: string, error: unknown) => void) {
    this.#onError = onError
  }

  /** A further step; `name` is what it closes. */
  add(name: string, run: () => Promise<unknown>): void {
    this.#steps.push({ name, run })
  }

  /** A step that fails does not stop the others. */
  async run(): Promise<void> {
    for (const { name, run } of this.#steps.splice(0).reverse()) await run().catch((error: unknown) => this.#onError(name, error))
  }
}
