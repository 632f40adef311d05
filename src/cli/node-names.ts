import { shortId } from '../kit/ids.js'
import { NodeError } from '../kit/errors.js'
import type { NodeApi } from '../ports/node-api.js'

/** Which node is called what, by id; empty while no node runs. */
export type NodeNames = ReadonlyMap<string, string>

/** The whole id of a node (52 characters of z-base-32), wherever it stands in a text. */
const IDS = /(?<![a-z0-9])[ybndrfg8ejkmcpqxot1uwisza345h769]{52}(?![a-z0-9])/g

/** Asks a running node for the names of all nodes, itself and revoked ones included; none when no node runs. */
export async function nodeNames(api: NodeApi): Promise<NodeNames> {
  try {
    const [{ node }, { peers }] = await Promise.all([api.call('node.info', {}), api.call('peers.list', { all: true })])
    return new Map([node, ...peers].map(({ id, name }) => [id, name]))
  } catch (error) {
    if (error instanceof NodeError && error.code === 'NODE_NOT_RUNNING') return new Map()
    throw error
  }
}

/** The ids of nodes that stand in a text. */
export function idsIn(text: string): readonly string[] {
  return text.match(IDS) ?? []
}

/** A text with names of nodes instead of ids, or short ids for unknown nodes: `text@<id>` becomes `text@laptop`. */
export function withNames(text: string, names: NodeNames): string {
  return text.replace(IDS, (id) => names.get(id) ?? shortId(id))
}
