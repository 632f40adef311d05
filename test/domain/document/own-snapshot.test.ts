import assert from 'node:assert/strict'
import test from 'brittle'
import fc from 'fast-check'
import { arbSteps, CompactingWorld, feed, replicaOver, runsIn, seenIn } from '../../support/compacting.js'
import { stateOf } from '../../support/documents.js'
import { holds } from '../../support/holds.js'

const arbChoices = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })
const ALL = [99, 99, 99, 99]

test('whoever has only the streams that are left has the document that those have who saw all of it being written', async (t) => {
  let compactions = 0
  await holds(
    t,
    fc.property(arbSteps(), arbChoices, arbChoices, (steps, one, other) => {
      const world = new CompactingWorld()
      for (const step of steps) world.step(step)
      compactions += world.compactions
      const streams = world.streams()
      const newcomers = [one, other].map((choices) => {
        const replica = replicaOver(streams)
        feed(replica, streams, choices)
        return replica
      })
      for (const member of world.members) world.hear(member, ALL)
      const replicas = [...newcomers, ...world.members.map(({ replica }) => replica)]
      for (const replica of replicas) {
        assert.equal(replica.counts().waiting, 0)
        assert.deepEqual(seenIn(replica.doc), seenIn(world.witness))
        assert.deepEqual(stateOf(replica), stateOf(replicas[0] as never))
        assert.deepEqual(runsIn(replica), runsIn(replicas[0] as never))
      }
    }),
    100
  )
  t.ok(compactions > 300, `${compactions} compactions`)
})
