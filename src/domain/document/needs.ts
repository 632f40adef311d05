import type { CheckedBlock } from './stream.js'
import { sevens } from './update/bytes.js'

/** A clientID and the clock that it must reach. */
export interface Missing {
  readonly client: number
  readonly end: number
}

/**
 * The first missing dependency of a block; null when it can be applied. `clockOf` gives the clock of a clientID in the
 * document; earlier writes of the block itself count too.
 */
export function blocker(
  { updates }: Pick<CheckedBlock, 'updates'>,
  clockOf: (client: number) => number
): Missing | null {
  const written = new Map<number, number>()
  for (const { contents } of updates) {
    for (const [client, end] of contents.needs) {
      if (end > (written.get(client) ?? clockOf(client))) return { client, end }
    }
    if (contents.writes !== null) written.set(contents.writes.client, contents.writes.clock + contents.writes.length)
  }
  return null
}

/**
 * An update of Yjs (v1) that fills the clocks of a clientID from `clock` on with nothing, as if it had been written and
 * removed.
 */
export function gapFilling({ client, end }: Missing, clock: number): Uint8Array {
  const numbers = [1, 1, client, clock, 0, end - clock, 0]
  return Uint8Array.from(numbers.flatMap(sevens))
}
