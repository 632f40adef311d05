import { NodeError } from '../../kit/errors.js'
import { tcpAddress } from '../../kit/net/tcp-address.js'
import { shellWord, shown } from '../../kit/text.js'
import type { CallerAuthority } from '../../domain/routing/effective.js'
import type { Calls } from '../../ports/node-api.js'
import { type PeersApiDeps, refuseRevoked, showPeer } from './peers.js'

/** How long a member is dialled at a new address at least, in milliseconds. */
const DIAL_MS = 10_000

/**
 * Gives a member one more address, or forgets it. A new one is dialled at once.
 * @throws NodeError PEER_NOT_FOUND, AMBIGUOUS_NAME; REVOKED for a new one; USAGE for a text that is no address, and
 * this node itself; OVERLOADED for too many; DISK_FULL, NO_PERMISSION
 */
export async function changeAddress(
  node: PeersApiDeps,
  { peer, address, remove = false }: Calls['peers.address']['params'],
  by: CallerAuthority
): Promise<Calls['peers.address']['result']> {
  const { givenAddresses, links, membership } = node.deps
  const nodeId = node.directory.node(peer)
  const at = tcpAddress(address)
  if (at === null)
    throw new NodeError(
      'USAGE',
      `${JSON.stringify(shown(address, 64))} is no address: it is host:port with a port of 1 to 65535, IPv6 as [fd7a::1]:7422`,
      {
        next: [
          `a2a-node peers ${remove ? 'show' : 'add'} ${shellWord(peer)}${remove ? '' : ' --address 10.0.0.5:7422'}`
        ]
      }
    )
  if (nodeId === membership.nodeId)
    throw new NodeError('USAGE', 'that is this node itself; tcp.addresses names where others reach it', {
      next: ['a2a-node peers']
    })
  if (!remove) refuseRevoked(node, nodeId)
  const changed = remove ? await givenAddresses.remove(nodeId, at) : await givenAddresses.add(nodeId, at)
  if (changed && !remove) links.dial(nodeId, DIAL_MS).catch(() => {})
  return { ...showPeer(node, nodeId, by), changed }
}
