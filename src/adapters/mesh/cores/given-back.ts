import type Hypercore from 'hypercore'
import { utf8 } from '../../../kit/ids.js'

/** Name of what a core of the log keeps once blocks of it were removed. */
const GIVEN_BACK = 'given-back'

/** Were blocks of this core removed, since its writer was revoked? Then how many are here tells nothing of the store. */
export async function isGivenBack(core: Pick<Hypercore, 'getUserData'>): Promise<boolean> {
  return (await core.getUserData(GIVEN_BACK)) !== null
}

/** Removes the blocks of a core from one on. Remembered first, so that no start takes it for a damage. */
export async function giveBack(core: Hypercore, from: number): Promise<void> {
  await core.setUserData(GIVEN_BACK, utf8(`${from}`))
  await core.clear(from, core.length)
}
