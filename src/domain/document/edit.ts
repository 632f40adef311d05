import type * as Y from 'yjs'
import { sequenceDiff } from './sequence-diff.js'

/**
 * Makes a shared text equal to `target` by the smallest change, so that what others write elsewhere at the same time stays.
 * One transaction; a text with formatting keeps that of what stays. `target` must have no lone
 * surrogates: on their way to others they would become U+FFFD.
 */
export function editText(text: Y.Text, target: string): void {
  // By code points: a surrogate pair is never split.
  const old = Array.from(text.toJSON())
  const next = Array.from(target)
  const hunks = sequenceDiff(old, next)
  if (hunks.length === 0) return
  const delta: { retain?: number; delete?: number; insert?: string }[] = []
  let at = 0
  for (const { at: place, remove, from, to } of hunks) {
    const kept = old.slice(at, place).join('').length
    if (kept > 0) delta.push({ retain: kept })
    if (remove > 0) delta.push({ delete: old.slice(place, place + remove).join('').length })
    if (to > from) delta.push({ insert: next.slice(from, to).join('') })
    at = place + remove
  }
  text.applyDelta(delta)
}
