import { createHash } from 'node:crypto'

/** Characters of a published name before its suffix. Clients refuse names over 64 and then hide the whole server. */
const MAX_STEM = 56
/** Characters of the suffix after its `_`: 42 bits of the hash. */
const SUFFIX = 7

/**
 * A canonical name as clients take it (`[A-Za-z0-9_-]{1,64}`): `.` and `/` become `__`, `@` becomes `_at_`, any other
 * foreign character `_`; a name longer than 56 is cut there and gets a suffix of its hash. In a list with another name
 * that would look the same both get the suffix: see {@link PublishedNames}.
 */
export function publishedName(canonical: string): string {
  const plain = plainName(canonical)
  return plain.length <= MAX_STEM ? plain : suffixed(canonical, plain)
}

/** The published name of a tool that was called as `called`; nothing when its canonical name is published. */
export function publishedAs(canonical: string, called: string): { readonly published?: string } {
  const published = called === canonical ? publishedName(canonical) : called
  return published === canonical ? {} : { published }
}

function plainName(canonical: string): string {
  if (/^[A-Za-z0-9_-]*$/.test(canonical)) return canonical
  return canonical
    .replaceAll(/[./]/g, '__')
    .replaceAll('@', '_at_')
    .replaceAll(/[^A-Za-z0-9_-]/gu, '_')
}

function suffixed(canonical: string, plain = plainName(canonical)): string {
  const hash = createHash('sha256').update(canonical).digest('base64url')
  return `${plain.slice(0, MAX_STEM)}_${hash.slice(0, SUFFIX)}`
}

/** The names of one list, both ways. Distinct canonical names never share a published one that resolves. */
export class PublishedNames {
  /** Names by their text before a suffix; nearly always one. */
  readonly #byStem = new Map<string, Set<string>>()
  readonly #plain = new Map<string, string>()

  /** Adds a canonical name; one that is there already is ignored. */
  add(canonical: string): void {
    if (this.#plain.has(canonical)) return
    const plain = plainName(canonical)
    this.#plain.set(canonical, plain)
    const stem = plain.slice(0, MAX_STEM)
    const names = this.#byStem.get(stem)
    if (names === undefined) this.#byStem.set(stem, new Set([canonical]))
    else names.add(canonical)
  }

  /** Removes a canonical name; false when it is not there. */
  delete(canonical: string): boolean {
    const plain = this.#plain.get(canonical)
    if (plain === undefined) return false
    this.#plain.delete(canonical)
    const stem = plain.slice(0, MAX_STEM)
    const names = this.#byStem.get(stem)
    names?.delete(canonical)
    if (names?.size === 0) this.#byStem.delete(stem)
    return true
  }

  /** How a canonical name of this list is published. */
  published(canonical: string): string {
    const plain = this.#plain.get(canonical) ?? plainName(canonical)
    const isAlone = (this.#byStem.get(plain.slice(0, MAX_STEM))?.size ?? 0) <= 1
    return isAlone && plain.length <= MAX_STEM ? plain : suffixed(canonical, plain)
  }

  /** The canonical name behind a canonical or published one. A published name with its suffix is always understood. */
  resolve(name: string): string | undefined {
    if (this.#plain.has(name)) return name
    const [only, other] = this.#byStem.get(name) ?? []
    if (only !== undefined && other === undefined && this.published(only) === name) return only
    const stem = name.slice(0, -SUFFIX - 1)
    for (const canonical of this.#byStem.get(stem) ?? []) if (suffixed(canonical) === name) return canonical
    return undefined
  }
}
