import { shown } from '../text.js'
import { nameFault, type NameForm } from './rule.js'

const NOT_ASCII = /[^ -~]/gu
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu

/**
 * A name that somebody else admitted, safe to show: as it is when {@link nameFault} has nothing against it, else with each
 * character outside of ASCII written out, e.g. `bo\u{200b}ss`. Control characters are gone, at most `max` UTF-16 units are left;
 * '' when there is nothing else. Applied twice it changes nothing more.
 */
export function safeName(text: string, { max }: Pick<NameForm, 'max'>): string {
  const line = shown(text, Number.POSITIVE_INFINITY).trim()
  return nameFault(line, { max, reserved: '' }) === null ? line : escaped(line).slice(0, max).trim()
}

/** A title that others gave, e.g. the display name on a card: no character in it is invisible. It says nothing of who it is. */
export function safeTitle(text: string, max: number): string {
  return shown(text.replace(UNSEEN, ''), max)
}

function escaped(text: string): string {
  return text.replace(NOT_ASCII, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
