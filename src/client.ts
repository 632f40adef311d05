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

/** Selects the node to connect to. */
export interface ConnectOptions {
  /** Directory of the node, as `--home`. Default: `A2A_NODE_HOME`, else the XDG directories. */
  readonly home?: string
  /** Default `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Returns the typed API of the node of a home on this machine. It connects at the first call; calls fail with NodeError
 * NODE_NOT_RUNNING while no node runs.
 * @throws NodeError PATH_TOO_LONG when the home is too long for a socket
 */
export function connect(options: ConnectOptions = {}): NodeApi {
  return connectControl(resolveHome(options).socket)
}

/**
 * A provider for Yjs editors and bindings, over a node of this machine. It synchronizes a Y.Doc with a shared document
 * and shares presence. `node`: a result of {@link connect}, or its options. Begin with an empty Y.Doc, edit after the
 * `sync` event, and destroy the provider at the end.
 */
export class A2AProvider extends DocumentProvider {
  constructor(
    node: NodeApi | ConnectOptions,
    name: string,
    ...[doc, options = {}]: [doc: Y.Doc, options?: ProviderOptions]
  ) {
    super('call' in node ? node : connect(node), name, doc, options)
  }
}
