import { createHash } from 'node:crypto'

/** Characters of a published name. Clients put up to 15 before it, and refuse names over 64. */
export const MAX_PUBLISHED = 49
/** Characters of the suffix after its `_`: 42 bits of the hash. */
const SUFFIX = 7
/** Characters of a published name before its suffix. */
const MAX_STEM = MAX_PUBLISHED - SUFFIX - 1
/** Characters that a cut name keeps of its agent and node. */
const MIN_HEAD = 14

/**
 * A canonical name as clients take it (`[A-Za-z0-9_-]{1,49}`): `.` and `/` become `__`, `@` becomes `_at_`, any other
 * foreign character `_`. A tool of an imported server loses its prefix `mcp_<server>_`. A longer name is cut, first in
 * the names of its agent and node, and gets a suffix of its hash. In a list with another name that would look the same
 * both get the suffix: see {@link PublishedNames}.
 */
export function publishedName(canonical: string): string {
  const plain = plainName(canonical)
  return plain.length <= MAX_PUBLISHED ? plain : suffixed(canonical, plain)
}

/** The published name of a tool that was called as `called`; nothing when its canonical name is published. */
export function publishedAs(canonical: string, called: string): { readonly published?: string } {
  const published = called === canonical ? publishedName(canonical) : called
  return published === canonical ? {} : { published }
}

/** A text in the letters of published names, of any length. */
export function nameLetters(text: string): string {
  if (/^[A-Za-z0-9_-]*$/.test(text)) return text
  return text
    .replaceAll(/[./]/g, '__')
    .replaceAll('@', '_at_')
    .replaceAll(/[^A-Za-z0-9_-]/gu, '_')
}

function plainName(canonical: string): string {
  return nameLetters(withoutServer(canonical))
}

/** `git@beta.mcp_git_log` as `git@beta.log`, and `mcp_git_log` of this node as `git.log`: the server is named once. */
function withoutServer(canonical: string): string {
  const [, local, localTool] = /^mcp_([^_]+)_(.+)$/s.exec(canonical) ?? []
  if (local !== undefined) return `${local}.${localTool}`
  const [, address, id, server, tool] = /^(([^@]+)@[^@.]+)\.mcp_([^_]+)_(.+)$/s.exec(canonical) ?? []
  return id === undefined || server !== id.replaceAll('_', '-') ? canonical : `${address}.${tool}`
}

/** The start of a long name: models choose by the end of it, so its agent and node are cut first. */
function stemOf(plain: string): string {
  const at = plain.indexOf('__')
  if (at < 0 || plain.length <= MAX_STEM) return plain.slice(0, MAX_STEM)
  const head = Math.max(MIN_HEAD, at - (plain.length - MAX_STEM))
  return `${plain.slice(0, Math.min(at, head))}${plain.slice(at)}`.slice(0, MAX_STEM)
}

function suffixed(canonical: string, plain = plainName(canonical)): string {
  const hash = createHash('sha256').update(canonical).digest('base64url')
  return `${stemOf(plain)}_${hash.slice(0, SUFFIX)}`
}

/** The names of one list, both ways. Distinct canonical names never share a published one that resolves. */
export class PublishedNames {
  /** Names by their text before a suffix. */
  readonly #byStem = new SetsByKey()
  /** Names by their text without one; nearly always one. */
  readonly #byPlain = new SetsByKey()
  readonly #plain = new Map<string, string>()

  /** Adds a canonical name; one that is there already is ignored. */
  add(canonical: string): void {
    if (this.#plain.has(canonical)) return
    const plain = plainName(canonical)
    this.#plain.set(canonical, plain)
    this.#byPlain.add(plain, canonical)
    this.#byStem.add(stemOf(plain), canonical)
  }

  /** Removes a canonical name; false when it is not there. */
  delete(canonical: string): boolean {
    const plain = this.#plain.get(canonical)
    if (plain === undefined) return false
    this.#plain.delete(canonical)
    this.#byPlain.delete(plain, canonical)
    this.#byStem.delete(stemOf(plain), canonical)
    return true
  }

  /** How a canonical name of this list is published. */
  published(canonical: string): string {
    const plain = this.#plain.get(canonical) ?? plainName(canonical)
    const isAlone = this.#byPlain.get(plain).size <= 1
    return isAlone && plain.length <= MAX_PUBLISHED ? plain : suffixed(canonical, plain)
  }

  /** The canonical name behind a canonical or published one. A published name with its suffix is always understood. */
  resolve(name: string): string | undefined {
    if (this.#plain.has(name)) return name
    const [only, other] = this.#byPlain.get(name)
    if (only !== undefined && other === undefined && this.published(only) === name) return only
    for (const canonical of this.#byStem.get(name.slice(0, -SUFFIX - 1)))
      if (suffixed(canonical) === name) return canonical
    return undefined
  }
}

/** Sets of names by a key. */
class SetsByKey {
  static readonly #NONE: ReadonlySet<string> = new Set()
  readonly #sets = new Map<string, Set<string>>()

  get(key: string): ReadonlySet<string> {
    return this.#sets.get(key) ?? SetsByKey.#NONE
  }

  add(key: string, name: string): void {
    const names = this.#sets.get(key)
    if (names === undefined) this.#sets.set(key, new Set([name]))
    else names.add(name)
  }

  delete(key: string, name: string): void {
    const names = this.#sets.get(key)
    names?.delete(name)
    if (names?.size === 0) this.#sets.delete(key)
  }
}
