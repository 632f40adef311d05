import type HyperDHT from 'hyperdht'
import type { DhtAddress } from 'hyperdht'
import type { NatKind } from '../../../ports/network/reach.js'

/** The NAT of this machine, and its address behind it. */
export interface Nat {
  readonly kind: NatKind
  /** Without the port where that differs from peer to peer; null while unknown. */
  readonly address: string | null
}

/** Inputs of {@link natOf}. */
export interface NatSigns {
  /** The address of this node as each asked DHT node saw it. */
  readonly seen: readonly DhtAddress[]
  /** The samples of the DHT itself, from all nodes that it met. */
  readonly dht: Pick<HyperDHT, 'host' | 'port' | 'randomized' | 'firewalled' | 'toArray'>
  /** The user declared this node reachable, so the DHT did not test that. */
  readonly isDeclared: boolean
  /** Addresses of this machine. */
  readonly own: readonly string[]
}

/** The NAT, as far as the answers show it. One answer alone shows no kind. */
export function natOf({ seen, dht, isDeclared, own }: NatSigns): Nat {
  const [first] = seen
  const address = first ?? (dht.host === null ? null : { host: dht.host, port: dht.port })
  if (address === null) return { kind: 'unknown', address: null }
  const { host, port } = address
  const isCompared = seen.length > 1
  const isRandom = isCompared ? seen.some((one) => one.host !== host || one.port !== port) : dht.randomized
  if (isRandom) return { kind: 'random', address: host }
  const text = port === 0 ? host : `${host}:${port}`
  if (!isCompared && (port === 0 || dht.toArray({ limit: 2 }).length < 2)) return { kind: 'unknown', address: text }
  const isOwn = host.startsWith('127.') || own.includes(host)
  return { kind: !dht.firewalled && (isOwn || !isDeclared) ? 'open' : 'consistent', address: text }
}
