import { CONFUSABLES } from './confusables.js'

const ASCII = /^[ -~]*$/
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu

// Signs and letters that look like signs of ASCII in a word, though UTS 39 does not list them.
const LIKE_SIGNS: Readonly<Record<string, string>> = {
  '\u30fc': '-',
  '\u4e00': '-',
  '\u3127': '-',
  '\u00b7': '.',
  '\u2027': '.'
}

let table: ReadonlyMap<string, string> | null = null

/**
 * The skeleton of a text: two texts of one skeleton are hard to tell apart (UTS 39, section 4). For comparisons only;
 * it covers the characters that names may have.
 */
export function skeleton(text: string): string {
  table ??= readTable()
  let looks = ''
  for (const character of text.normalize('NFD').replace(IGNORABLE, ''))
    looks += LIKE_SIGNS[character] ?? table.get(character) ?? character
  return looks.normalize('NFD')
}

function readTable(): ReadonlyMap<string, string> {
  const rows = new Map<string, string>()
  for (const group of CONFUSABLES.flatMap((line) => line.split(' '))) {
    const [like = '', ...characters] = group.split(/[:,]/)
    for (const one of characters) rows.set(textOf(one), textOf(like))
  }
  return rows
}

function textOf(codes: string): string {
  return String.fromCodePoint(...codes.split('+').map((code) => Number.parseInt(code, 16)))
}

/**
 * Names, and which of them another one looks like. Two names of ASCII are never taken for alike, e.g. `worker-1` and
 * `worker-l`: such names are a matter of their readers, and have always been allowed.
 */
export class LookAlikes {
  /** By skeleton, the first name of ASCII and the first of others. */
  readonly #ascii = new Map<string, string>()
  readonly #others = new Map<string, string>()
  /** ASCII names whose skeletons were not needed yet: nearly all names are ASCII and are never compared. */
  readonly #pending: string[] = []

  constructor(names: Iterable<string> = []) {
    for (const name of names) this.add(name)
  }

  /** Adds a name. */
  add(name: string): void {
    if (ASCII.test(name)) this.#pending.push(name)
    else this.#put(this.#others, name)
  }

  #put(names: Map<string, string>, name: string): void {
    const looks = skeleton(name)
    if (!names.has(looks)) names.set(looks, name)
  }

  /** The name that was added and that this one looks like; null when there is none but itself. */
  find(name: string): string | null {
    const isAscii = ASCII.test(name)
    if (isAscii && this.#others.size === 0) return null
    if (!isAscii) for (const one of this.#pending.splice(0)) this.#put(this.#ascii, one)
    const looks = skeleton(name)
    const others = [this.#others.get(looks), isAscii ? undefined : this.#ascii.get(looks)]
    return others.find((other) => other !== undefined && other !== name) ?? null
  }
}
