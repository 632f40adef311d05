import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'

/** A document without the right to write or restrict, and the names of the nodes that can grant it, as far as known. */
export interface DeniedDocument {
  readonly name: string
  readonly creator: string | null
  /** Of the mesh. */
  readonly owner: string | null
  /** The present rule for writers, as far as known, and the name of the node that wants to be one. */
  readonly rule?: WriteRule | undefined
  readonly writer?: string
}

/** A rule for writers. `members`: by name. */
export interface WriteRule {
  readonly members: readonly { readonly name: string }[]
  readonly tier: string | null
}

/** FORBIDDEN for a reader that may not write the document. */
export function writeDenied(document: DeniedDocument): NodeError {
  const message = `the document ${shown(document.name)} is read-only here: ${sayersText(document)} can grant the right to write`
  return new NodeError('FORBIDDEN', message, { next: stepsOf(document) })
}

/** FORBIDDEN for a member that may not restrict the document. */
export function restrictDenied(document: DeniedDocument): NodeError {
  const message = `the access of the document ${shown(document.name)} cannot be set here: ${sayersText(document)} can set it`
  return new NodeError('FORBIDDEN', message, { next: stepsOf(document) })
}

/** FORBIDDEN for a member that may not remove the document from the mesh. */
export function removalDenied(document: DeniedDocument): NodeError {
  const { name } = document
  const message = `the document ${shown(name)} cannot be removed from the mesh here: ${sayersText(document)} can remove it`
  return new NodeError('FORBIDDEN', message, {
    next: [`a2a-node doc rm ${shellWord(name)}   # from this node`, `a2a-node doc show ${shellWord(name)}`]
  })
}

function sayersText({ creator, owner }: DeniedDocument): string {
  const named = (name: string | null): string => (name === null ? '' : ` (${shown(name, 64)})`)
  return `its creator${named(creator)} and the owner of the mesh${named(owner)}`
}

/**
 * A new list replaces the old one: a list of members alone is printed with the new one, any other is to be shown first.
 */
function stepsOf({ name, creator, owner, rule, writer }: DeniedDocument): string[] {
  const show = `a2a-node doc access ${shellWord(name)}`
  const places = [...new Set([creator, owner].filter((one) => one !== null))].map((one) => shown(one, 64))
  const where = places.length === 0 ? 'a node of its creator, or of the owner of the mesh' : places.join(' or ')
  const isListed = writer !== undefined && rule?.tier === null
  const words = isListed ? shellWord([...rule.members.map((one) => one.name), writer].join(',')) : "'<who may>'"
  return [show, `${show} --write ${words}   # on ${where}`]
}
