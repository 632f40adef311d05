import type { Pinned } from '../../../domain/pinning/pinned.js'
import type { ImportedToolInfo } from '../../../ports/imported-tools.js'
import type { ImportAdapter, ImportItem, ImportOffer } from '../../../ports/imports.js'

/** Characters of a description in lists. */
const SHOWN_DESCRIPTION = 1000

type PinnedItems = Pick<Pinned<object>, 'seen' | 'accepted'>

/** Names of the items in force that the config allows and that the other side still has. */
export function namesInForce(adapter: ImportAdapter, pinned: PinnedItems): ReadonlySet<string> {
  const names = itemsOf(adapter, pinned.accepted).map(({ name }) => name)
  const there = namesThere(adapter, pinned)
  return new Set(names.filter((name) => adapter.isAllowed(name) && (there?.has(name) ?? true)))
}

/** Every known item of an import, sorted by name, each with the reason why it is not offered. */
export function listedItems(
  adapter: ImportAdapter,
  pinned: PinnedItems,
  offer: ImportOffer | null
): readonly ImportedToolInfo[] {
  const inForce = itemsOf(adapter, pinned.accepted)
  const known = [...inForce, ...itemsOf(adapter, pinned.seen), ...inForce.filter(({ name }) => adapter.isAllowed(name))]
  const capabilities = offer?.definition.capabilities ?? []
  const items = new Map(known.map((item) => [item.name, item]))
  // A card without skills has a capability all the same.
  if (items.size === 0)
    for (const { id, description, inputSchema } of capabilities) items.set(id, { name: id, description, inputSchema })
  const offered = new Set(capabilities.map(({ id }) => id))
  const there = namesThere(adapter, pinned)
  const withReasons = [...items.values()].map((item) => {
    const isOffered = offered.has(adapter.capability(item.name))
    return { ...item, reason: isOffered ? null : withheldReason(adapter, item.name, { there, offer }) }
  })
  const faults = pinned.seen === null ? [] : adapter.faults(pinned.seen)
  return [...withReasons, ...faults.map((fault) => ({ description: '', inputSchema: {}, ...fault }))]
    .map(({ name, description, inputSchema, reason }) => ({
      name,
      capability: adapter.capability(name),
      description: description.slice(0, SHOWN_DESCRIPTION),
      inputSchema,
      offered: reason === null,
      reason
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function withheldReason(
  adapter: ImportAdapter,
  name: string,
  { there, offer }: { readonly there: ReadonlySet<string> | null; readonly offer: ImportOffer | null }
): string {
  const { short, items } = adapter.words
  if (!adapter.isAllowed(name)) return `not among \`${items}\` of the config`
  if (offer?.leftOut.includes(name) === true)
    return `the card of the agent has no room for it: name fewer in \`${items}\` of the config`
  return (there?.has(name) ?? true) ? 'not accepted yet' : `the ${short} has it no more`
}

/**
 * Names of the items that the other side has now; null: nothing was seen yet, so that all in force are taken to be
 * there.
 */
function namesThere(adapter: ImportAdapter, { seen }: PinnedItems): ReadonlySet<string> | null {
  return seen === null ? null : new Set(adapter.items(seen).map(({ name }) => name))
}

function itemsOf(adapter: ImportAdapter, value: object | null): readonly ImportItem[] {
  return value === null ? [] : adapter.items(value)
}
