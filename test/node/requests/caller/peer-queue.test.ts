import test from 'brittle'
import { type QueuedRequest, PeerQueue } from '../../../../src/node/requests/caller/peer-queue.js'

interface Request extends QueuedRequest {
  isAwaited: boolean
  dueAt: number
}

/** Requests of which each look is counted. */
function requests(count: number): { all: Request[]; looks: () => number } {
  let looks = 0
  const all = Array.from({ length: count }, () => {
    let isAwaited = true
    return {
      dueAt: 0,
      get isAwaited() {
        looks++
        return isAwaited
      },
      set isAwaited(value: boolean) {
        isAwaited = value
      }
    }
  })
  return { all, looks: () => looks }
}

test('at most as many as the window are with the peer, first come first, and each that ends lets the next go', (t) => {
  const lane = new PeerQueue<Request>()
  const { all } = requests(10)
  for (const one of all) lane.wait(one, 0)
  t.alike(lane.next(0, 4), all.slice(0, 4))
  t.alike(lane.next(0, 4), [])
  lane.remove(all[1])
  t.alike(lane.next(0, 4), [all[4]])
  for (const one of all.slice(2, 4)) one.isAwaited = false
  t.alike(lane.next(0, 4), all.slice(5, 7), 'requests whose callers gave up take no place')
  t.is(lane.waiting, 3)
})

test('a request refused by a full peer waits for its time, behind the others', (t) => {
  const lane = new PeerQueue<Request>()
  const { all } = requests(3)
  const [first, second, third] = all as [Request, Request, Request]
  for (const one of all) lane.send(one)
  first.dueAt = 100
  lane.wait(first, 0)
  second.dueAt = 50
  lane.wait(second, 0)
  lane.wait(third, 0)
  t.alike(lane.next(49, 8), [third])
  t.alike(lane.next(50, 8), [second])
  t.ok(lane.isWaiting(first))
  t.alike(lane.next(100, 8), [first])
  t.absent(lane.isWaiting(first))
  t.absent(lane.remove(first))
  lane.remove(second)
  t.ok(lane.remove(third), 'none is left')
})

test('ten thousand that wait are sent with looks at the window alone, not at all that wait', (t) => {
  const lane = new PeerQueue<Request>()
  const { all, looks } = requests(10_000)
  for (const one of all) lane.wait(one, 0)
  const sent: Request[] = []
  for (let under = lane.next(0, 128); under.length > 0; under = lane.next(0, 128)) {
    sent.push(...under)
    for (const one of under) {
      lane.remove(one)
      const [next] = lane.next(0, 128)
      if (next !== undefined) under.push(next)
      if (next !== undefined) sent.push(next)
    }
  }
  t.is(sent.length, all.length)
  t.alike(sent, all)
  t.ok(looks() <= 128 * all.length, `${looks()} looks`)
})
