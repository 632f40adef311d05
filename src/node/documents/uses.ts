/** What {@link DocumentUses} needs. */
export interface DocumentUsesDeps<T> {
  open(name: string): Promise<T>
  /** A use of it is over. */
  letGo(name: string, opened: T): void
}

/**
 * Which documents are in use: each from the moment on at which somebody wants it, and not when it is open, since one that is
 * removed meanwhile would be open without its blocks.
 */
export class DocumentUses<T> {
  readonly #uses = new Map<string, number>()
  readonly #deps: DocumentUsesDeps<T>

  constructor(deps: DocumentUsesDeps<T>) {
    this.#deps = deps
  }

  /** Is it in use? */
  has(name: string): boolean {
    return this.#uses.has(name)
  }

  /** Opens a document for a use, until that is released. Rejects as opening does; the use is over then. */
  async hold(name: string): Promise<{ readonly opened: T; release(): void }> {
    this.#add(name, 1)
    try {
      const opened = await this.#deps.open(name)
      let isInUse = true
      const release = (): void => {
        if (!isInUse) return
        isInUse = false
        this.#add(name, -1)
        this.#deps.letGo(name, opened)
      }
      return { opened, release }
    } catch (error) {
      this.#add(name, -1)
      throw error
    }
  }

  #add(name: string, change: 1 | -1): void {
    const uses = (this.#uses.get(name) ?? 0) + change
    if (uses > 0) this.#uses.set(name, uses)
    else this.#uses.delete(name)
  }
}
