import { scriptBreak, scriptOf } from './scripts.js'

/** Longest name of a node or mesh, in UTF-16 units. */
export const NAME_MAX = 64
/** Longest name of a document, in UTF-16 units. */
export const DOCUMENT_NAME_MAX = 128
/** Most marks (accents, vowel signs) on one letter of a name. */
const MAX_MARKS = 4

/** Id of the built-in agent that people and swarms send as. */
export const OPERATOR = 'operator'
/** Why nothing else may have an id of the node. */
export const RESERVED_ID = 'is reserved by the node; choose another name'

/** Further rules for the names of one kind. */
export interface NameForm {
  readonly max: number
  /** Characters of ASCII that have another meaning where such names stand. */
  readonly reserved: string
}

/** Names of nodes: `@` separates agent and node in addresses. */
export const NODE_NAME: NameForm = { max: NAME_MAX, reserved: '@' }
/** Names of documents. */
export const DOCUMENT_NAME: NameForm = { max: DOCUMENT_NAME_MAX, reserved: '' }

/** Why a text is no name. */
export interface NameFault {
  /** The cause, e.g. `U+200B at character 3 is invisible`. */
  readonly reason: string
  /** A name that the text may have meant; null when none is near. */
  readonly instead: string | null
}

const PRINTABLE_ASCII = /^[ -~]*$/
const HIDDEN = /^\p{Default_Ignorable_Code_Point}$/u
const OTHER = /^\p{C}$/u
// Letters and digits of RFC 8264 (section 9.1), printable ASCII, and the characters of UTS 31 (table 3a) for the middle
// of words.
const ADMITTED =
  /^[ -~\p{L}\p{Mn}\p{Mc}\p{Nd}\u00b7\u0375\u058a\u05f3\u05f4\u06fd\u06fe\u0f0b\u2010\u2019\u2027\u30a0\u30fb]$/u
// Signs of phonetics and of old spellings, which UTS 39 does not allow in identifiers: they imitate common letters.
const TECHNICAL = /^[\u0138\u0250-\u02ff\u1d00-\u1dbf\ua720-\ua7ff\uab30-\uab6f]$/
const MARK = /^\p{M}$/u
const TOO_MANY_MARKS = new RegExp(String.raw`\p{M}{${MAX_MARKS + 1}}`, 'u')
const ARABIC_DIGITS = /[\u0660-\u0669].*[\u06f0-\u06f9]|[\u06f0-\u06f9].*[\u0660-\u0669]/u

/**
 * Says why a text may not be a new name; null for a valid one. The rule for all names: the identifiers of RFC 8264
 * (PRECIS), printable ASCII, and the "highly restrictive" level of UTS 39. It depends on the Unicode tables of the
 * runtime. It is applied where a name is admitted or displayed, and never decides about an entry of a replicated log.
 */
export function nameFault(text: string, form: NameForm): NameFault | null {
  const reason = reasonAgainst(text, form)
  if (reason === null) return null
  const plain = plainForm(text)
  return { reason, instead: reasonAgainst(plain, form) === null ? plain : null }
}

/**
 * Why a command line could not take a text for a name: it reads as an option, as a pattern, or as a place. null when it
 * can.
 */
export function commandFault(text: string): string | null {
  if (/^\p{Pd}/u.test(text)) return 'it begins with a dash, as the options of commands do'
  return /[\p{L}\p{N}]/u.test(text) ? null : 'it has neither a letter nor a digit'
}

/** The rule for names of a form, in words for people. */
export function nameRule({ max, reserved }: NameForm): string {
  const but = reserved === '' ? '' : `, without ${reserved}`
  return `a name has 1 to ${max} characters${but}, no dash first: letters of one script, digits, spaces and signs of ASCII`
}

/** A character as people look it up: `U+200B`. */
export function codePointText(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

function reasonAgainst(text: string, { max, reserved }: NameForm): string | null {
  if (text.trim() === '') return 'it is empty'
  if (text.length > max) return `it has ${text.length} characters, and ${max} are the most`
  if (text !== text.trim()) return 'it begins or ends with a space'
  return characterFault(text, reserved) ?? commandFault(text) ?? compositionFault(text)
}

function characterFault(text: string, reserved: string): string | null {
  if (PRINTABLE_ASCII.test(text) && reserved === '') return null
  let at = 0
  for (const character of text) {
    at++
    const what = faultOf(character, reserved)
    if (what !== null) return `${placed(character, at)} ${what}`
  }
  return null
}

function faultOf(character: string, reserved: string): string | null {
  if (reserved.includes(character)) return `(${character}) has another meaning in addresses`
  if (HIDDEN.test(character)) return 'is invisible'
  if (OTHER.test(character)) return 'is a control character, or stands for nothing'
  if (character.normalize('NFKC') !== character)
    return `is another form of ${JSON.stringify(character.normalize('NFKC'))}`
  return ADMITTED.test(character) && !TECHNICAL.test(character)
    ? null
    : 'is no letter of a living spelling, no digit and no sign of ASCII'
}

/** A fault of a combination of characters that are each allowed. */
function compositionFault(text: string): string | null {
  if (PRINTABLE_ASCII.test(text)) return null
  if (text.normalize('NFKC') !== text)
    return `${placed(...firstChanged(text))} joins with the one beside it into another`
  if (MARK.test([...text][0] ?? '')) return `${placed([...text][0] ?? '', 1)} is a mark that belongs on a letter`
  const marks = TOO_MANY_MARKS.exec(text)
  if (marks !== null) return `${placedAt(text, marks.index)} begins a row of more than ${MAX_MARKS} marks`
  if (ARABIC_DIGITS.test(text)) return 'it has digits of two kinds that look alike'
  const at = mixedAt(text)
  if (at === null) return null
  const script = scriptOf(text.slice(at))
  return `${placedAt(text, at)} is ${script === null ? 'of a script that names do not have' : `${script} among letters of another script`}`
}

/**
 * Index of the first character of another script than its word; null for none. Words may be of several scripts:
 * `Отчёт PDF`.
 */
function mixedAt(text: string): number | null {
  let from = 0
  for (const word of text.split(' ')) {
    const at = scriptBreak(word)
    if (at !== null) return from + at
    from += word.length + 1
  }
  return null
}

function firstChanged(text: string): [string, number] {
  const [before, after] = [[...text], [...text.normalize('NFKC')]]
  const at = before.findIndex((character, index) => character !== after[index])
  return [before[at] ?? '', at + 1]
}

function placedAt(text: string, index: number): string {
  return placed(String.fromCodePoint(text.codePointAt(index) ?? 0), [...text.slice(0, index)].length + 1)
}

function placed(character: string, at: number): string {
  return `${codePointText(character)} at character ${at}`
}

/** The text with its characters in their usual forms and without invisible ones. */
function plainForm(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\p{C}\p{Default_Ignorable_Code_Point}]/gu, '')
    .normalize('NFKC')
    .replace(/^[\p{Pd}\s]+/u, '')
    .trim()
}
