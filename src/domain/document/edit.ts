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
 * Sets a shared text to `target` by the smallest change, so that concurrent edits stay. One transaction. Remaining text
 * keeps its formatting, and unread embedded objects stay. `target` must have no lone surrogates: the wire would turn
 * them into U+FFFD.
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

/**
 * Replaces parts of a text of a document, first to last, which do not overlap. One transaction; embedded content stays.
 */
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
    // Replacement text for text behind an embedded object stays behind it too.
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

/**
 * Positions of embedded objects, in order: the length of text before each. Read from the items: Yjs would give each its
 * formats.
 */
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
