/**
 * Which clientIDs the programs have that hold a document. One whose program is gone goes to the next one, which begins with the
 * whole document; so a stream's sessions are not used up by programs that come and go.
 */
export class ProgramIds {
  /** Of programs that go on. */
  readonly #given = new Set<number>()
  /** Of programs that are gone. */
  readonly #free: number[] = []
  /** Those of them that were given to another program than the first. */
  readonly #reused = new Set<number>()

  /**
   * The one that a program had once, if it is one of programs and nobody else had it since; else one that is over; null when
   * there is none. After a restart no program goes on: what was not given since belongs to who asks for it.
   */
  choose(wanted: number | null, isOfPrograms: (clientId: number) => boolean): number | null {
    const mayHave = wanted !== null && !this.#given.has(wanted) && !this.#reused.has(wanted) && isOfPrograms(wanted)
    return mayHave ? this.#again(wanted) : this.#another(wanted)
  }

  /** Nobody else has it until it is given back. */
  give(clientId: number): void {
    this.#given.add(clientId)
  }

  /** Its program is gone. */
  giveBack(clientId: number): void {
    if (this.#given.delete(clientId)) this.#free.push(clientId)
  }

  /** They are those of a stream that is written no more. */
  clear(): void {
    this.#free.length = 0
    this.#given.clear()
  }

  #again(wanted: number): number {
    const place = this.#free.indexOf(wanted)
    if (place !== -1) this.#free.splice(place, 1)
    return wanted
  }

  /** Not the one that was wished for: who asks would take it for its own still. */
  #another(wanted: number | null): number | null {
    const place = this.#free.findLastIndex((clientId) => clientId !== wanted)
    const [clientId = null] = place === -1 ? [] : this.#free.splice(place, 1)
    if (clientId !== null) this.#reused.add(clientId)
    return clientId
  }
}
