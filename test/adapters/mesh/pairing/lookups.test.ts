import test from 'brittle'
import type { SwarmOfPairing } from 'blind-pairing'
import { hash, verify } from '../../../../src/adapters/mesh/network/sodium.js'
import { requestJoin } from '../../../../src/adapters/mesh/pairing/join.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { SHORT_SECRET_BYTES } from '../../../../src/domain/membership/invites/short-code.js'
import { SHORT_ROOT_BYTES } from '../../../../src/domain/membership/mesh-root.js'
import { failsWith } from '../../../support/fails.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

/** A network without peers, with its lookups. `isClosed`: it refuses all further ones, as a destroyed Hyperswarm. */
function emptyNetwork() {
  const seen = { joins: 0, open: new Set<symbol>(), refreshes: 0, isClosed: false }
  const join = () => {
    if (seen.isClosed) throw new Error('Swarm destroyed')
    seen.joins++
    const session = Symbol('session')
    seen.open.add(session)
    const refresh = async (): Promise<boolean> => {
      if (seen.isClosed) throw new Error('PeerDiscovery is destroyed')
      seen.refreshes++
      return true
    }
    return { refresh, flushed: async () => true, destroy: async () => void seen.open.delete(session) }
  }
  const fails = async (): Promise<never> => Promise.reject(new Error('no peers'))
  const dht = { on: () => {}, removeListener: () => {}, mutableGet: fails, mutablePut: fails }
  const swarm = { dht, join, flush: async () => true, connections: [], on: () => {}, removeListener: () => {} }
  return { seen, swarm: swarm as unknown as SwarmOfPairing }
}

test('a join that waits looks admins up again in the same session, and leaves neither session nor timer, also when the network closes', async (t) => {
  for (const isClosed of [false, true]) {
    const { seen, swarm } = emptyNetwork()
    const clock = new ManualClock()
    const { id: nodeId, coreKey, sign } = actor('newcomer')
    const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
    const deps = { swarm, nodeId, sign, verify, hash, clock, telemetry, clocks: () => [] }
    const place = { network: 'public', bootstrap: [], localPort: null, trust: 'guest' } as const
    const root = new Uint8Array(SHORT_ROOT_BYTES)
    const code = { kind: 'short', ...place, secret: new Uint8Array(SHORT_SECRET_BYTES), root } as const
    const joining = failsWith(t, 'NO_ADMIN_ONLINE', () =>
      requestJoin(deps, { code, coreKey, name: 'newcomer', timeoutMs: 60_000 })
    )
    await new Promise(setImmediate)
    const { joins } = seen
    seen.isClosed = isClosed
    clock.advance(59_000)
    t.is(seen.joins, joins, 'no further session')
    t.is(seen.refreshes, isClosed ? 0 : 14)
    clock.advance(1000)
    await joining
    t.alike([seen.open.size, clock.pending], [0, 0])
  }
})
