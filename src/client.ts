import type * as Y from 'yjs'
import { connectControl } from './adapters/control/client.js'
import { DocumentProvider, type ProviderOptions } from './adapters/control/document-provider.js'
import { resolveHome } from './config/paths.js'
import type { NodeApi } from './ports/node-api.js'

export type { ProviderEvents, ProviderOptions } from './adapters/control/document-provider.js'
export { type ErrorBody, type ErrorCode, NodeError } from './kit/errors.js'
export type * from './ports/document-api.js'
export type * from './ports/node-api.js'
export type * from './ports/policy-api.js'
export type * from './ports/swarm-api.js'

/** Which node to talk to. */
export interface ConnectOptions {
  /** Directory of the node, as `--home`. Default: `A2A_NODE_HOME`, else the XDG directories. */
  readonly home?: string
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Gives the typed API of the node that runs on this machine in a home. Nothing is connected before the first call; calls
 * fail with NodeError NODE_NOT_RUNNING while no node runs.
 * @throws NodeError PATH_TOO_LONG when the home is too long for a socket
 */
export function connect(options: ConnectOptions = {}): NodeApi {
  return connectControl(resolveHome(options).socket)
}

/**
 * A provider for editors and bindings of Yjs, over a node of this machine: keeps a Y.Doc equal to a shared document, and
 * shares presence. The node is one of {@link connect}, or where to find it. Begin with an empty Y.Doc, and edit once `sync`
 * was told; destroy it at the end.
 */
export class A2AProvider extends DocumentProvider {
  constructor(node: NodeApi | ConnectOptions, name: string, ...[doc, options = {}]: [doc: Y.Doc, options?: ProviderOptions]) {
    super('call' in node ? node : connect(node), name, doc, options)
  }
}
