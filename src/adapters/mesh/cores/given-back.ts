import type Hypercore from 'hypercore'
import { utf8 } from '../../../kit/ids.js'

/** Key of the user data that marks a core of the log whose blocks were removed. */
const GIVEN_BACK = 'given-back'

/**
 * Were blocks of this core removed, since its writer was revoked? Then the number of blocks here tells nothing of the
 * store.
 */
export async function isGivenBack(core: Pick<Hypercore, 'getUserData'>): Promise<boolean> {
  return (await core.getUserData(GIVEN_BACK)) !== null
}

/** Removes the blocks of a core from `from` on. Recorded first, so that no start takes it for damage. */
export async function giveBack(core: Hypercore, from: number): Promise<void> {
  await core.setUserData(GIVEN_BACK, utf8(`${from}`))
  await core.clear(from, core.length)
}
