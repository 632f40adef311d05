import test from 'brittle'
import fc from 'fast-check'
import { SendBudget } from '../../../src/node/peers/send-budget.js'

const MIB = 1024 * 1024
const LARGEST = 16 * MIB

test('a message is taken while less than 8 MiB wait for its peer, however large it is', (t) => {
  const peer = new SendBudget().peer()
  for (let waiting = 0; waiting < 8 * MIB; waiting += MIB / 4) t.ok(peer.take(MIB / 4))
  t.absent(peer.take(1))
  peer.leave(1)
  t.ok(peer.take(LARGEST), 'one of 16 MiB as well')
  t.absent(peer.take(1))
})

test('one peer that reads slowly leaves as much to the others as it takes; each has half a MiB in any case', (t) => {
  const room = new SendBudget()
  const slow = [room.peer(), room.peer()]
  t.alike(
    slow.map((one) => one.take(LARGEST)),
    [true, true],
    'the bytes of one do not keep the next from a message of the largest size'
  )
  const others = Array.from({ length: 62 }, () => room.peer())
  for (const one of others) {
    t.absent(one.take(2 * MIB))
    t.ok(one.take(MIB / 2))
  }
  for (const one of slow) one.leave(LARGEST)
  t.ok(others[0]?.take(7 * MIB), 'sent bytes are free again')
})

test('64 MiB wait at most, of one peer never more than 8 MiB and a message, and all unsent bytes are given back, for any messages', (t) => {
  const step = fc.record({
    peer: fc.nat(99),
    bytes: fc.oneof(fc.integer({ min: 1, max: 4096 }), fc.integer({ min: 1, max: LARGEST })),
    isSent: fc.boolean()
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const room = new SendBudget()
      const peers = Array.from({ length: 100 }, () => ({ room: room.peer(), waiting: [] as number[] }))
      const sum = (waiting: readonly number[]): number => waiting.reduce((all, one) => all + one, 0)
      for (const { peer, bytes, isSent } of steps) {
        const one = peers[peer % peers.length]
        const oldest = isSent ? one.waiting.shift() : undefined
        if (oldest !== undefined) one.room.leave(oldest)
        const before = sum(one.waiting)
        const isTaken = one.room.take(bytes)
        if (isTaken) one.waiting.push(bytes)
        if (isTaken && before >= 8 * MIB) return false
        if (sum(peers.flatMap(({ waiting }) => waiting)) > 64 * MIB) return false
      }
      for (const one of peers) for (const bytes of one.waiting.splice(0)) one.room.leave(bytes)
      return peers.every((one) => one.room.take(1)) && (peers[0]?.room.take(LARGEST) ?? false)
    }),
    { numRuns: 200 }
  )
  t.pass('valid in 200 runs')
})
