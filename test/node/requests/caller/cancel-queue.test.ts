import test from 'brittle'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import type { RequestRecord } from '../../../../src/domain/reliable/records.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { CancelQueue, StrayRuns } from '../../../../src/node/requests/caller/cancel-queue.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor } from '../../../support/membership.js'

const [self, peer, other] = [actor('self').id, actor('peer').id, actor('other').id]
const telemetryOf = (clock: ManualClock) =>
  new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })

function queue(): { cancels: CancelQueue; said: string[]; reachable: Set<NodeId>; breaks: Set<NodeId> } {
  const [said, reachable, breaks] = [[] as string[], new Set<NodeId>(), new Set<NodeId>()]
  const cancels = new CancelQueue({
    telemetry: telemetryOf(new ManualClock()),
    self,
    cancelHere: (key) => said.push(`here ${key}`),
    nextHop: {
      isReachable: (node) => reachable.has(node),
      sendControl: (node, name, body) => {
        if (breaks.has(node)) throw new Error('the link breaks')
        said.push(`${node === peer ? 'peer' : 'other'} ${name} ${JSON.stringify(body)}`)
      }
    }
  })
  return { cancels, said, reachable, breaks }
}

test('a cancellation goes at once to a peer that is reachable, and on this very node to the work itself', (t) => {
  const { cancels, said, reachable } = queue()
  reachable.add(peer)
  cancels.cancel(peer, 'req_1#1')
  cancels.cancel(self, 'req_2#1')
  t.alike(said, ['peer cancel {"requestId":"req_1#1"}', 'here req_2#1'])
})

test('a cancellation waits for a peer that is away, or whose link breaks, and is sent once', (t) => {
  const { cancels, said, reachable, breaks } = queue()
  cancels.cancel(peer, 'req_1#1')
  reachable.add(peer)
  breaks.add(peer)
  cancels.onReachable(peer)
  t.alike(said, [], 'it waits on')
  breaks.delete(peer)
  cancels.onReachable(other)
  t.alike(said, [])
  cancels.onReachable(peer)
  cancels.onReachable(peer)
  t.alike(said, ['peer cancel {"requestId":"req_1#1"}'])
})

test('of a thousand and one cancellations for one peer the oldest is dropped, and all of a peer that does not come back', (t) => {
  const { cancels, said, reachable } = queue()
  for (let at = 0; at <= 1000; at++) cancels.cancel(peer, `req_${at}#1`)
  cancels.cancel(other, 'req_x#1')
  reachable.add(peer).add(other)
  cancels.forget(other)
  cancels.onReachable(other)
  cancels.onReachable(peer)
  t.is(said.length, 1000)
  t.is(said[0], 'peer cancel {"requestId":"req_1#1"}')
})

test('a run that a peer names is canceled again when its request was, of that peer and attempt alone, once a heartbeat', async (t) => {
  const clock = new ManualClock()
  const canceled = {
    status: 'failed',
    error: { code: 'CANCELED' },
    target: `echo@${peer}`,
    attempt: 1
  } as unknown as RequestRecord
  const records = new Map([
    ['req_1', canceled],
    ['req_2', { ...canceled, status: 'pending', error: null }],
    ['req_3', { ...canceled, target: `echo@${other}` }],
    ['req_4', { ...canceled, attempt: 2 }]
  ] as [string, RequestRecord][])
  const again: string[] = []
  let looks = 0
  const strays = new StrayRuns({
    clock,
    telemetry: telemetryOf(clock),
    limits: { heartbeatMs: 1000 },
    requestStore: {
      asked: (id) => {
        looks++
        return Promise.resolve(records.get(id) ?? null)
      }
    },
    cancel: (node, key) => again.push(`${node === peer ? 'peer' : 'other'} ${key}`)
  })
  const named = new Set(['req_1#1', 'req_2#1', 'req_3#1', 'req_4#1', 'req_5#1'])
  await strays.look(peer, named)
  t.alike(again, ['peer req_1#1'])
  await strays.look(peer, named)
  t.is(looks, 5, 'not twice in one heartbeat')
  clock.advance(500)
  await strays.look(peer, new Set(Array.from({ length: 40 }, (_one, at) => `req_x${at}#1`)))
  t.is(looks, 37, 'a peer names what it likes: 32 are looked up')
})
