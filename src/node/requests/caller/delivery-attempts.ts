/** The copies of one request that went to its peer, and how many of them the peer said it did not do. */
export class DeliveryAttempts {
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

  /** One more is about to be sent: an agent of this node answers before it is. */
  sending(): void {
    this.#sent++
  }

  /** It was not sent. */
  notSent(): void {
    this.#sent--
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
