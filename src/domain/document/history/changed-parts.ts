import * as Y from 'yjs'
import type { SharedPart } from '../shared-types.js'
import { contentsFrom, isNested, isXml, type TypeFields } from '../shared-values.js'

/** Bounds of the description of one change. */
export const CHANGED_LIMITS = {
  /** Parts that are named. */
  maxParts: 4,
  /** Parts of a document that are known by name. */
  maxKnown: 1024,
  /** Items of a part that are inspected for its type. */
  maxItems: 32,
  /** Levels between a changed value and its part. */
  maxLevels: 256
} as const

/** A part of a document that a change touched. `type` null: its content does not show it. */
export interface ChangedPart {
  readonly root: string
  readonly type: Exclude<SharedPart['type'], 'mixed'> | null
}

/** Notes the parts of a document that its transactions change. The cost is bounded by the changes and the limits. */
export class ChangedParts {
  readonly #doc: Y.Doc
  readonly #types = new Map<string, ChangedPart['type']>()
  #touched = new Map<string, ChangedPart>()

  /** Begins to observe `doc`. */
  constructor(doc: Y.Doc) {
    this.#doc = doc
    // Deleted content is there until this event is over, so it still shows the type of its part.
    doc.on('afterTransaction', ({ changed }: Y.Transaction) => this.#note(changed))
  }

  /** The parts changed since the last call, at most {@link CHANGED_LIMITS}, in the order of their names. */
  take(): readonly ChangedPart[] {
    const touched = [...this.#touched.values()].sort((a, b) => (a.root < b.root ? -1 : 1))
    this.#touched = new Map()
    return touched.slice(0, CHANGED_LIMITS.maxParts)
  }

  #note(changed: Y.Transaction['changed']): void {
    if (changed.size === 0) return
    const names = this.#names()
    for (const [type, keys] of changed) {
      const root = rootOf(type)
      const name = root === null ? undefined : names.get(root)
      if (root === null || name === undefined || this.#touched.has(name)) continue
      const known = root === type && ![...keys].includes(null) ? 'map' : (typeOf(root) ?? this.#types.get(name) ?? null)
      this.#types.set(name, known)
      this.#touched.set(name, { root: name, type: known })
    }
  }

  #names(): Map<unknown, string> {
    const names = new Map<unknown, string>()
    for (const [name, type] of this.#doc.share) {
      if (names.size === CHANGED_LIMITS.maxKnown) break
      names.set(type, name)
    }
    return names
  }
}

type PlacedType = TypeFields & Pick<Y.AbstractType<unknown>, '_item'>

/** The part that contains a shared type; null beyond the limit of levels. */
function rootOf(type: PlacedType): TypeFields | null {
  let root = type
  for (let level = 0; level < CHANGED_LIMITS.maxLevels; level++) {
    const { _item: within } = root
    if (!(within?.parent instanceof Y.AbstractType)) return root
    root = within.parent
  }
  return null
}

/** The type of a part by its first items, deleted ones included; null when they do not show it. */
function typeOf(root: TypeFields): ChangedPart['type'] {
  for (const content of contentsFrom(root, CHANGED_LIMITS.maxItems)) {
    if (isXml(content)) return 'xml'
    if (content instanceof Y.ContentDeleted) continue
    const isOfText =
      content instanceof Y.ContentString || content instanceof Y.ContentEmbed || content instanceof Y.ContentFormat
    return isOfText && !isNested(content) ? 'text' : 'list'
  }
  const { _map: keys, _start: first } = root
  return keys.size > 0 && first === null ? 'map' : null
}
