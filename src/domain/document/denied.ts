import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'

/** A document that somebody may not write or restrict, and who says who may: names of nodes, as far as they are known. */
export interface DeniedDocument {
  readonly name: string
  readonly creator: string | null
  /** Of the mesh. */
  readonly owner: string | null
}

/** FORBIDDEN for who may see a document, but not write it. */
export function writeDenied(document: DeniedDocument): NodeError {
  const message = `the document ${shown(document.name)} may be read here, not written: ${sayersText(document)} say who may write it`
  return new NodeError('FORBIDDEN', message, { next: stepsOf(document) })
}

/** FORBIDDEN for who may not say who may see and write a document. */
export function restrictDenied(document: DeniedDocument): NodeError {
  const message = `who may see and write the document ${shown(document.name)} is not said here: ${sayersText(document)} say it`
  return new NodeError('FORBIDDEN', message, { next: stepsOf(document) })
}

function sayersText({ creator, owner }: DeniedDocument): string {
  const named = (name: string | null): string => (name === null ? '' : ` (${shown(name, 64)})`)
  return `its creator${named(creator)} and the owner of the mesh${named(owner)}`
}

/** What is set replaces what was: it is shown first. */
function stepsOf({ name, creator, owner }: DeniedDocument): string[] {
  const show = `a2a-node doc access ${shellWord(name)}`
  const places = [...new Set([creator, owner].filter((one) => one !== null))].map((one) => shown(one, 64))
  const where = places.length === 0 ? 'a node of its creator, or of the owner of the mesh' : places.join(' or ')
  return [show, `${show} --write '<who may>'   # on ${where}`]
}
