import fs from 'node:fs/promises'
import test, { type Assert } from 'brittle'
import { startControlServer } from '../../src/adapters/control/server.js'
import { type DoctorCheck } from '../../src/maintenance/doctor-check.js'
import { diagnoseHome } from '../../src/maintenance/doctor.js'
import type { HomePaths } from '../../src/config/paths.js'
import { takeHomeLock } from '../../src/compose/open-home.js'
import type { Problem } from '../../src/ports/node-api.js'
import { FakeNodeApi } from '../contracts/node-api-fake.js'
import { apiOf, localNodes } from '../support/local-nodes.js'
import { untilTrue } from '../support/nodes.js'

/** What `doctor` says of one name while a node with these problems uses the home. */
async function whileRunning(t: Assert, problems: readonly Problem[]): Promise<readonly DoctorCheck[]> {
  const { homeOf, optionsOf } = await localNodes(t)
  const home = homeOf('a')
  const { config } = await optionsOf('a', {})
  await serve(home, problems, t)
  return (await diagnoseHome({ home, config, now: Date.now() })).filter(({ name }) => name === 'node')
}

/** Takes the home and answers at its socket, as a node does, until the test ends. */
async function serve(home: HomePaths, problems: readonly Problem[], t: Assert): Promise<void> {
  await fs.mkdir(home.run, { recursive: true, mode: 0o700 })
  const lock = await takeHomeLock(home, Date.now())
  const fake = new FakeNodeApi({ status: { problems } })
  const server = await startControlServer({ path: home.socket, tier: () => 0, apiFor: () => fake, onRefusal: () => {} })
  t.teardown(async () => {
    await server.close()
    await lock.release()
  })
}

test('doctor reports every problem that the running node reports, as requests without an owner', async (t) => {
  const message = '3 requests without an outcome were in no queue and at no peer; they are sent again'
  const problems = [{ code: 'REQUEST_ORPHANED', message, next: 'a2a-node tasks' }]
  t.alike(await whileRunning(t, problems), [
    { name: 'node', result: 'warn', text: `REQUEST_ORPHANED: ${message}`, next: ['a2a-node tasks'] }
  ])
  t.alike(await whileRunning(t, []), [{ name: 'node', result: 'ok', text: 'reports no problem', next: [] }])
})

test('doctor fails where the node that runs reports a damage that only a repair mends', async (t) => {
  const next = 'a2a-node stop && a2a-node doctor --repair'
  const problems = [{ code: 'STORE_DAMAGED', message: 'it lost 1 block', next }]
  t.alike(await whileRunning(t, problems), [
    { name: 'node', result: 'fail', text: 'STORE_DAMAGED: it lost 1 block', next: [next] }
  ])
})

test('doctor counts requests without an outcome in the ledger of a stopped node', { timeout: 60_000 }, async (t) => {
  const { start, homeOf, optionsOf } = await localNodes(t)
  const { config } = await optionsOf('a', {})
  const look = async (): Promise<readonly string[]> =>
    (await diagnoseHome({ home: homeOf('a'), config, now: Date.now() }))
      .filter(({ name }) => name === 'requests')
      .map(({ text }) => text)
  const a = await start('a')
  const { code: join } = await apiOf(a).call('invite.create', { trust: 'mine' })
  const b = await start('b', { name: 'b', join })
  const agent = 'text@b'
  const known = async (): Promise<boolean> =>
    (await apiOf(a).call('agents.list', { origin: 'remote' })).agents.some(({ address }) => address === agent)
  await untilTrue(known, 'the agent of the other node is known')
  await b.close()
  const asked = await apiOf(a).call('message.call', {
    agent,
    capability: 'text.stats',
    input: { text: 'one' },
    wait: false
  })
  t.is(asked.outcome, 'QUEUED')
  await a.close()
  t.alike(await look(), ['1 without an outcome; the next start goes on with them'])
})
