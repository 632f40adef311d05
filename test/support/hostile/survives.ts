import type { Assert } from 'brittle'
import type { Attack } from './attacks.js'
import { MAX_DISK, MAX_MEMORY } from './limits.js'
import { runAttack } from './run.js'
import { attackScene } from './scene.js'

/** Honest calls of a phase; `npm run hostile` makes more, and looks at their times. */
const CALLS = 60

/**
 * Honest nodes live through an attack in its small size, lose no call, stay within their limits, and put the member
 * out.
 */
export async function survives(t: Assert, attack: Attack): Promise<void> {
  const scene = await attackScene(t, { isAdmin: attack.isAdmin === true })
  const { before, after, cutSeconds } = await runAttack(t, scene, {
    attack,
    size: 'small',
    calls: CALLS,
    rounds: 1,
    paceMs: 0
  })
  t.ok(after.memory < MAX_MEMORY, `${after.memory} MiB of memory, ${before.memory} before`)
  t.ok(after.disk - before.disk < (attack.maxDisk ?? MAX_DISK), `${after.disk} MiB on disk, ${before.disk} before`)
  if (attack.isCut === true) t.ok(cutSeconds !== null, 'she is cut')
  for (const { api } of [scene.victim, scene.bob]) t.is((await api.call('node.status', {})).state, 'running')
  if (attack.isKept === true) t.is((await (await scene.restart()).api.call('node.status', {})).state, 'running')
}
