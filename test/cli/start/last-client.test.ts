import { mock } from 'node:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { LastClient } from '../../../src/cli/start/last-client.js'
import { resolveHome } from '../../../src/config/paths.js'
import { tempDir } from '../../support/tmp.js'

/** Timers of the test's own, and whether the node of the clients has ended. */
async function scene(t: Assert) {
  const home = resolveHome({ home: await tempDir(t), env: {} })
  mkdirSync(home.run, { recursive: true })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const lastClient = new LastClient(home)
  t.teardown(() => lastClient.release())
  const after = async (ms: number): Promise<boolean> => {
    mock.timers.tick(ms)
    return await Promise.race([lastClient.gone.then(() => true), Promise.resolve().then(() => false)])
  }
  return { home, lastClient, after }
}

test('a node ends 3 s after its last client, and 60 s after its start without any', async (t) => {
  const { lastClient, after } = await scene(t)
  lastClient.begin()
  t.absent(await after(59_999))
  lastClient.counted(1)
  t.absent(await after(600_000))
  lastClient.counted(0)
  t.absent(await after(2999))
  t.ok(await after(1))
})

test('a client that came and went before the node was up ends no later client', async (t) => {
  const { lastClient, after } = await scene(t)
  lastClient.counted(1)
  lastClient.counted(0)
  lastClient.begin()
  lastClient.counted(1)
  t.absent(await after(600_000), 'while it is there')
  lastClient.counted(0)
  t.ok(await after(3000))
})

test('a node whose client went long before it was up ends, also with a mark of an earlier process', async (t) => {
  const { home, lastClient, after } = await scene(t)
  writeFileSync(path.join(home.run, 'stays-after-clients'), '')
  lastClient.counted(1)
  lastClient.counted(0)
  t.absent(await after(3000))
  lastClient.begin()
  t.ok(await after(60_000))
})
