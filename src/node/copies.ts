/** The copies of one request that went to its peer, and how many of them the peer said it did not do. */
export class Copies {
  #sent: number
  #denied = 0

  /** `sent`: by the processes before. */
  constructor(sent: number) {
    this.#sent = sent
  }

  /** May its peer have one of them? */
  get isOut(): boolean {
    return this.#denied < this.#sent
  }

  /** Sends one more. @throws what `post` throws; then it was not sent. */
  async send(post: () => Promise<unknown>): Promise<void> {
    // An agent of this node answers before it is sent.
    this.#sent++
    try {
      await post()
    } catch (error) {
      this.#sent--
      throw error
    }
  }

  /** Was all but one denied, so that none is under way once that is as well? */
  get isLast(): boolean {
    return this.#denied + 1 >= this.#sent
  }

  /** The peer did not do one of them. True: nor any other. */
  denied(): boolean {
    return ++this.#denied >= this.#sent
  }
}
