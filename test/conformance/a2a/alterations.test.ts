import test, { type Assert } from 'brittle'
import { localMesh } from '../../support/nodes.js'
import { JSON_RPC, REST } from './bindings.js'
import { type Case, readCases } from './cases.js'
import { readExpected } from './report.js'
import { type CaseRun, runCase } from './run-case.js'
import { startWorld } from './world.js'

type Alteration = NonNullable<CaseRun['alter']>

/** Nothing in place of the last answer of a case. */
const EMPTY: Alteration = {
  answer: (given) => ({ ...given, status: 200, headers: {}, body: {}, error: null }),
  events: () => [],
  asked: () => []
}
/** A refusal in its place. */
const REFUSED: Alteration = {
  ...EMPTY,
  answer: (given) => ({ ...given, error: { type: 'unknown', code: 0, message: '', details: null } })
}

/** Cases whose last answer is empty when it is right. */
const EMPTY_IS_RIGHT = ['PUSH-CFG-003', 'PUSH-IDEM-001']

/** Fails before its last step: the node has what the case is about, or it is an open failure. */
function isEarly({ id, needs }: Case): boolean {
  return Object.values(needs).includes(false) || readExpected().some((one) => one.id === id)
}

test('every case fails by its last answer when that is empty, or a refusal where an empty one is right', {
  timeout: 60_000
}, async (t: Assert) => {
  const world = await startWorld(t, await localMesh(t))
  const [place] = world.places
  if (place === undefined) throw new Error('no place')
  const jobs = readCases()
  const work = async (): Promise<void> => {
    for (let one = jobs.shift(); one !== undefined; one = jobs.shift()) {
      const alter = EMPTY_IS_RIGHT.includes(one.id) ? REFUSED : EMPTY
      const binding = one.only.includes('jsonrpc') || one.only.includes('grpc') ? JSON_RPC : REST
      // A case of an agent without an ability is run as if this one had none.
      const able = { ...place, capabilities: { ...place.capabilities, ...one.needs } }
      const verdict = await runCase(one, { place: able, binding, world, alter, patienceMs: 6000 })
      t.is(verdict.state, 'failed', one.id)
      t.ok(
        verdict.why?.startsWith(`step ${one.steps.length}: `) === true || isEarly(one),
        `${one.id}: ${verdict.why ?? ''}`
      )
    }
  }
  await Promise.all(Array.from({ length: 16 }, work))
})
