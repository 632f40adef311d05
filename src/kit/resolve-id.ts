import { type ErrorCode, NodeError } from './errors.js'
import { nearest, shown } from './text.js'

/** Fewest characters of an id, after the common prefix of its kind, that identify it. */
export const MIN_ID_CHARACTERS = 4
/** Ids that an error names, at most. */
export const MAX_CANDIDATES = 8

/** A kind of ids that people type, of items of type `T`. */
export interface IdKind<T = unknown> {
  /** One of them, and several: `task`, `tasks`. */
  readonly one: string
  readonly several: string
  /** Where they are, for the error: `on this node`. */
  readonly where?: string
  /** Common prefix of the ids, e.g. `task_`; may be empty. */
  readonly prefix: string
  readonly code: ErrorCode
  readonly list: string
  /** Text of a candidate; default: its id. */
  readonly label?: (id: string, item: T) => string
}

/**
 * The item with that id, or with the only id of that prefix. A prefix needs {@link MIN_ID_CHARACTERS} characters after
 * the prefix of the kind.
 * @throws NodeError AMBIGUOUS_NAME with the first {@link MAX_CANDIDATES} in `data.candidates`; `kind.code`, with
 * similar ones there if there are some
 */
export function resolveId<T>(text: string, items: ReadonlyMap<string, T>, kind: IdKind<T>): T {
  const exact = items.get(text)
  if (exact !== undefined) return exact
  const hits = text === '' ? [] : [...items].filter(([id]) => id.startsWith(text))
  const [hit] = hits
  if (hit !== undefined && hits.length === 1 && mayStandFor(text, kind)) return hit[1]
  const near = new Set(hit === undefined ? nearest(text, items.keys()) : [])
  const found = hit === undefined ? [...items].filter(([id]) => near.has(id)) : hits
  const candidates = found.slice(0, MAX_CANDIDATES).map(([id, item]) => kind.label?.(id, item) ?? id)
  const details = { ...(candidates.length === 0 ? {} : { data: { candidates } }), next: [kind.list] }
  if (hits.length > 1)
    throw new NodeError('AMBIGUOUS_NAME', `"${shown(text)}" may mean several ${kind.several}`, details)
  const least = `at least ${MIN_ID_CHARACTERS} characters${kind.prefix === '' ? '' : ` after ${kind.prefix}`}`
  const rule = hit === undefined ? '' : `: the beginning of an id needs ${least}`
  const where = kind.where === undefined ? '' : ` ${kind.where}`
  throw new NodeError(kind.code, `no ${kind.one} "${shown(text)}"${where}${rule}`, details)
}

/** Is a text long enough to stand for the id of a kind that begins with it? */
export function mayStandFor(text: string, { prefix }: Pick<IdKind, 'prefix'>): boolean {
  return text.length >= prefix.length + MIN_ID_CHARACTERS
}
