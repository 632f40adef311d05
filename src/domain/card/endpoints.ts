import { tcpAddress } from '../../kit/net/tcp-address.js'
import { websocketUrl } from '../../kit/net/websocket-url.js'
import type { AgentEndpoint, CardBody } from './card.js'

/** Addresses of one node and transport that count, at most. */
const MAX_ADDRESSES = 4
/** Marks an address for Noise over TCP. Earlier builds refuse a card with another transport than theirs. */
const TCP_SCHEME = 'tcp://'

/** Where members reach a node besides its key. */
export interface CardAddresses {
  /** `host:port`. */
  readonly tcp: readonly string[]
  /** URLs. */
  readonly websocket: readonly string[]
}

/** The valid addresses on a card, at most 4 of each transport, in its order. */
export function addressesOn({ endpoints }: Pick<CardBody, 'endpoints'>): CardAddresses {
  const valid = (read: (one: AgentEndpoint) => string | null): readonly string[] =>
    endpoints
      .map(read)
      .filter((one) => one !== null)
      .slice(0, MAX_ADDRESSES)
  return {
    tcp: valid(({ transport, address = '' }) =>
      transport === 'hyperswarm' && address.startsWith(TCP_SCHEME) ? tcpAddress(address.slice(TCP_SCHEME.length)) : null
    ),
    websocket: valid(({ transport, address = '' }) => (transport === 'websocket' ? websocketUrl(address) : null))
  }
}

/** The endpoints that name these addresses. */
export function endpointsOf({ tcp, websocket }: CardAddresses): readonly AgentEndpoint[] {
  return [
    ...tcp.map((address): AgentEndpoint => ({ transport: 'hyperswarm', address: `${TCP_SCHEME}${address}` })),
    ...websocket.map((address): AgentEndpoint => ({ transport: 'websocket', address }))
  ]
}
