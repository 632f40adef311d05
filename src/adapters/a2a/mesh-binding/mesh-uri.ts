/** URI of the binding of A2A to mesh links, as on cards (docs/A2A-BINDING.md). */
export const MESH_BINDING = 'urn:a2a-node:binding:mesh:1'
/** Scheme of URLs of the binding. */
export const MESH_SCHEME = 'a2a-mesh:'
/** Longest accepted URL, in characters. */
const MAX_URL = 2048

/** Node and path of a URL of the binding. */
export interface MeshPlace {
  /** Key of the node, or its name in the mesh. */
  readonly node: string
  /** `/agents/{id}`, or `/a2a` for the node. */
  readonly path: string
}

/** The URL of a path of a node. */
export function meshUrl(nodeId: string, path: string): string {
  return `${MESH_SCHEME}//${nodeId}${path}`
}

/** Does the text have the scheme of the binding? */
export function isMeshUrl(text: string): boolean {
  return text.slice(0, MESH_SCHEME.length).toLowerCase() === MESH_SCHEME
}

/** Reads a URL of the binding; null when the text is no such URL. No path means `/a2a`. */
export function readMeshUrl(text: string): MeshPlace | null {
  if (!isMeshUrl(text) || text.length > MAX_URL) return null
  const [, node = '', path = ''] =
    /^\/\/([^/?#@:\s]{1,256})(\/agents\/[^/?#\s]+|\/a2a)?\/?$/.exec(text.slice(MESH_SCHEME.length)) ?? []
  return node === '' ? null : { node, path: path === '' ? '/a2a' : path }
}
