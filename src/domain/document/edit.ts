import * as Y from 'yjs'
import { sequenceDiff } from './sequence-diff.js'
import { contentsOf } from './shared-values.js'

/** A part of a text to be replaced; places count the UTF-16 units that are read of it. */
interface TextPart {
  readonly at: number
  readonly remove: number
  readonly insert: string
}

/**
 * Makes a shared text equal to `target` by the smallest change, so that what others write elsewhere at the same time stays.
 * One transaction; a text with formatting keeps that of what stays, and all that is embedded, which is not read, stays too.
 * `target` must have no lone surrogates: on their way to others they would become U+FFFD.
 */
export function editText(text: Y.Text, target: string): void {
  // By code points: a surrogate pair is never split.
  const old = Array.from(text.toJSON())
  const next = Array.from(target)
  let read = 0
  let at = 0
  const parts = sequenceDiff(old, next).map(({ at: place, remove, from, to }) => {
    const removed = old.slice(place, place + remove).join('').length
    read += old.slice(at, place).join('').length
    const part = { at: read, remove: removed, insert: next.slice(from, to).join('') }
    read += removed
    at = place + remove
    return part
  })
  replaceParts(text, parts)
}

/** Replaces parts of a text of a document, first to last, which do not overlap. One transaction; what is embedded in it stays. */
export function replaceParts(text: Y.Text, parts: readonly TextPart[]): void {
  const embeds = embedsOf(text)
  let passed = 0
  let read = 0
  let place = 0
  const pass = (to: number, isRemoved: boolean): void => {
    const go = (end: number): void => {
      if (isRemoved) text.delete(place, end - read)
      else place += end - read
      read = end
    }
    // What stands in for text behind something embedded stands behind it too.
    for (let next = embeds[passed]; next !== undefined && next < to + (isRemoved ? 0 : 1); next = embeds[++passed]) {
      go(next)
      place++
    }
    go(to)
  }
  text.doc?.transact(() => {
    for (const { at, remove, insert } of parts) {
      pass(at, false)
      pass(at + remove, true)
      text.insert(place, insert)
      place += insert.length
    }
  })
}

/** Where something that is no text stands, in order: how much text is before each place of it. By what it holds: Yjs would give each all its formats. */
function embedsOf(text: Y.Text): number[] {
  const embeds: number[] = []
  let read = 0
  for (const content of contentsOf(text)) {
    if (!content.isCountable()) continue
    if (content instanceof Y.ContentString) read += content.str.length
    else for (let i = 0; i < content.getLength(); i++) embeds.push(read)
  }
  return embeds
}
