import type HyperDHT from 'hyperdht'
import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { keyFromText, type NodeId } from '../../../kit/ids.js'
import type { PeerSight } from '../../../ports/network/reach.js'
import { dialWebSocket } from '../transport/websocket-client.js'
import type { DialRecord } from './dial-record.js'
import type { NetworkState } from './reachability.js'
import { timely } from './timely.js'

/** How long a search in the DHT, and a try of a WebSocket, may take, in milliseconds. */
const LOOK_MS = 5000
/** URLs that are tried, at most. */
const MAX_URLS = 4

/** Dependencies of {@link examinePeer}. */
export interface SightDeps {
  readonly dht: Pick<HyperDHT, 'findPeer'>
  readonly state: Pick<NetworkState, 'info'>
  readonly dials: Pick<DialRecord, 'of'>
  readonly clock: Clock
  /** May WebSockets that a peer names be of this machine alone? */
  readonly isLocal: boolean
  urlsOf(peer: NodeId): readonly string[]
}

/** The ways to a peer, except its clock: searched in the DHT, and its WebSockets tried. Never rejects. */
export async function examinePeer(deps: SightDeps, peer: NodeId): Promise<Omit<PeerSight, 'clockAheadMs'>> {
  const urls = deps.urlsOf(peer).slice(0, MAX_URLS)
  const [isAnnounced, webSockets] = await Promise.all([
    deps.state.info().dht?.state === 'silent' ? null : isFound(deps, peer),
    Promise.all(urls.map(async (url) => ({ url, fault: await faultOf(deps, url) })))
  ])
  return { isAnnounced, udp: deps.dials.of(peer), webSockets }
}

async function isFound({ dht, clock }: SightDeps, peer: NodeId): Promise<boolean> {
  const query = dht.findPeer(keyFromText(peer))
  let found = false
  const search = async (): Promise<void> => {
    for await (const _ of query) {
      found = true
      return
    }
  }
  await timely(search(), clock, LOOK_MS)
  query.destroy()
  return found
}

async function faultOf({ clock, isLocal }: SightDeps, url: string): Promise<string | null> {
  const limit = new AbortController()
  const timer = clock.after(LOOK_MS, () => limit.abort())
  try {
    const bytes = await dialWebSocket(url, { isForeign: !isLocal, clock, signal: limit.signal })
    bytes.on('error', () => {})
    bytes.destroy()
    return null
  } catch (error) {
    return limit.signal.aborted ? `no answer within ${LOOK_MS / 1000} s` : messageOf(error)
  } finally {
    clock.clear(timer)
  }
}
