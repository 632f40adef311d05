import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import {
  IDLE_MS,
  MAX_RETURN_DIALS,
  neighbourPlan,
  restMs,
  spareLink,
  type WantedMember
} from '../../../src/domain/membership/neighbours.js'
import { holds } from '../../support/holds.js'

const NOW = 100_000

const arbLinks = fc.uniqueArray(
  fc.record({ peer: fc.string({ minLength: 1 }), usedAt: fc.nat(NOW), busy: fc.boolean() }),
  {
    maxLength: 70,
    selector: (one) => one.peer
  }
)

test('of the unused links the one used longest ago is closed; one in use or fresh never, and never the only one', async (t) => {
  await holds(
    t,
    fc.property(arbLinks, (links) => {
      const spare = spareLink(
        links.map(({ peer, usedAt, busy }) => ({ peer, usedAt, isBusy: () => busy })),
        NOW
      )
      const idle = links.filter(({ usedAt, busy }) => !busy && usedAt <= NOW - IDLE_MS)
      if (links.length < 2 || idle.length === 0) return assert.equal(spare, null)
      const chosen = idle.find((one) => one.peer === spare)
      assert.equal(chosen?.usedAt, Math.min(...idle.map((one) => one.usedAt)))
    })
  )
})

test('two needs do not throw each other out again and again: a link that just opened stays for ten seconds', (t) => {
  const links = (...times: number[]) => times.map((usedAt, at) => ({ peer: `p${at}`, usedAt, isBusy: () => false }))
  t.is(spareLink(links(0, NOW - IDLE_MS + 1), NOW), 'p0')
  t.is(spareLink(links(NOW - IDLE_MS + 1, NOW), NOW), null)
  t.is(spareLink(links(NOW - IDLE_MS, NOW), NOW), 'p0')
})

test('a peer without a free slot is left alone for ten seconds, twice as long with each further time, a minute at most', (t) => {
  t.alike([1, 2, 3, 4, 5, 5000].map(restMs), [10_000, 20_000, 40_000, 60_000, 60_000, 60_000])
})

const arbMembers = fc
  .array(
    fc.record({
      isLinked: fc.boolean(),
      restsUntil: fc.option(fc.nat(2 * NOW)),
      returnDials: fc.option(fc.nat(2 * MAX_RETURN_DIALS))
    }),
    { maxLength: 150 }
  )
  .map((members): WantedMember[] => members.map((one, at) => ({ nodeId: `m${at}`, ...one })))

test('dialled peers: all where there is a slot for each, else only while there are links to less than half of the slots', async (t) => {
  await holds(
    t,
    fc.property(arbMembers, fc.integer({ min: 1, max: 64 }), (members, places) => {
      const { missing, beyond, isOpen } = neighbourPlan(members, places, NOW)
      const linked = members.filter((one) => one.isLinked).length
      const isShort = linked < Math.ceil(Math.min(places, members.length) / 2)
      const isFitting = members.length <= places
      assert.equal(isOpen, isFitting && members.every((one) => one.restsUntil === null))
      for (const { nodeId, isLinked, restsUntil, returnDials } of members) {
        const isMissing = missing.includes(nodeId)
        const isBeyond = beyond.includes(nodeId)
        if (isLinked) assert.deepEqual([isMissing, isBeyond], [false, false])
        else assert.equal(isBeyond, !isFitting || restsUntil !== null)
        if (linked >= places) assert.equal(isMissing, false)
        else if (!isLinked && restsUntil !== null) assert.equal(isMissing, isShort && restsUntil <= NOW)
        else if (!isLinked)
          assert.equal(isMissing, isFitting || isShort || (returnDials !== null && returnDials < MAX_RETURN_DIALS))
      }
    })
  )
})

test('where everybody has a link, and where all have places, nobody is beyond and nobody is probed', async (t) => {
  await holds(
    t,
    fc.property(fc.nat(64), fc.infiniteStream(fc.boolean()), (count, linked) => {
      const members = Array.from({ length: count }, (_, at) => ({
        nodeId: `m${at}`,
        isLinked: linked.next().value === true,
        restsUntil: null,
        returnDials: null
      }))
      assert.deepEqual(neighbourPlan(members, 64, NOW).beyond, [])
    })
  )
})
