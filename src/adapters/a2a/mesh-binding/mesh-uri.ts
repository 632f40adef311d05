/** URI of the binding of A2A to the links of a mesh, as cards name it (docs/A2A-BINDING.md). */
export const MESH_BINDING = 'urn:a2a-node:binding:mesh:1'
/** Scheme of its URLs. */
export const MESH_SCHEME = 'a2a-mesh:'
/** Largest one that is read, in characters. */
const MAX_URL = 2048

/** What a URL of the binding names. */
export interface MeshPlace {
  /** A node, by its key or by the name that it has in the mesh. */
  readonly node: string
  /** `/agents/{id}`, or `/a2a` for the node. */
  readonly path: string
}

/** The URL of a path of a node. */
export function meshUrl(nodeId: string, path: string): string {
  return `${MESH_SCHEME}//${nodeId}${path}`
}

/** Is a text meant as a URL of the binding? */
export function isMeshUrl(text: string): boolean {
  return text.slice(0, MESH_SCHEME.length).toLowerCase() === MESH_SCHEME
}

/** Reads a URL of the binding; null for what is none. Without a path it is the node's. */
export function readMeshUrl(text: string): MeshPlace | null {
  if (!isMeshUrl(text) || text.length > MAX_URL) return null
  const [, node = '', path = ''] = /^\/\/([^/?#@:\s]{1,256})(\/agents\/[^/?#\s]+|\/a2a)?\/?$/.exec(text.slice(MESH_SCHEME.length)) ?? []
  return node === '' ? null : { node, path: path === '' ? '/a2a' : path }
}
