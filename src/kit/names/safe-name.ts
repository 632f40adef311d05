import { shown } from '../text.js'
import { nameFault, type NameForm } from './rule.js'

const NOT_ASCII = /[^ -~]/gu
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/**
 * A foreign name, safe to display: unchanged if {@link nameFault} accepts it, else with each non-ASCII character
 * escaped, e.g. `bo\u{200b}ss`. Control characters are removed. At most `max` UTF-16 units are left, possibly none.
 * Applying it twice changes nothing more.
 */
export function safeName(text: string, { max }: Pick<NameForm, 'max'>): string {
  const line = shown(text, Number.POSITIVE_INFINITY).trim()
  return nameFault(line, { max, reserved: '' }) === null ? line : escaped(line).slice(0, max).trim()
}

/** A foreign title, e.g. the display name on a card, without invisible characters. It identifies no one. */
export function safeTitle(text: string, max: number): string {
  return shown(text.replace(UNSEEN, ''), max)
}

function escaped(text: string): string {
  return text.replace(NOT_ASCII, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
