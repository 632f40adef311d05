import test from 'brittle'
import type { Asking } from '../../../src/node/requests/caller/request-codec.js'
import type { Asked } from '../../../src/node/requests/caller/requests.js'
import { LeaseRequests, type LeaseRequestsDeps, type LeasesOf } from '../../../src/node/swarms/lease-requests.js'
import { failsWith } from '../../support/fails.js'
import { ManualClock } from '../../support/manual-clock.js'

const NODE = 'y'.repeat(52)

test('the request of an expired lease is not recorded over the next lease of its item', async (t) => {
  const sent: Asking[] = []
  const never = new Promise<never>(() => {})
  const requests = {
    ask: (asking: Asking): Promise<Asked> => {
      sent.push(asking)
      return never
    }
  }
  const head = { id: 'swarm_1', deadline: 60_000, request: { goal: 'count' } }
  const recorded: number[] = []
  const swarm = {
    head,
    term: null,
    work: () => ({ capability: 'work', input: null }),
    changes: ({ attempt }: { readonly attempt: number }) => {
      recorded.push(attempt)
      return []
    }
  }
  const deps = { self: NODE, clock: new ManualClock(), requests } as unknown as LeaseRequestsDeps
  const leases = new LeaseRequests(deps, swarm as unknown as LeasesOf)
  const lease = { index: 0, agent: `worker@${'b'.repeat(52)}`, isRepeatable: true, failures: 0 }
  leases.begin({ ...lease, attempt: 1 })
  leases.cancel(0, 1)
  leases.begin({ ...lease, attempt: 2 })
  await Promise.resolve()
  const [expired, next] = sent.map((asking) => asking.lease)
  await failsWith(t, 'CANCELED', () => Promise.resolve().then(() => expired?.changes()))
  t.alike(next?.changes(), [])
  t.alike(recorded, [2])
})
