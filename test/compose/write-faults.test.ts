import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { readStartFlags } from '../../src/config/start-flags.js'
import { type RunningNode, startNode } from '../../src/compose/compose.js'
import { openNodeStore } from '../../src/adapters/storage/home/node-store.js'
import { WriteFaults } from '../../src/adapters/storage/home/write-faults.js'
import type { NodeApi, Problem } from '../../src/ports/node-api.js'
import { apiOf, localNodes } from '../support/local-nodes.js'
import { until, untilTrue } from '../support/nodes.js'
import { ManualClock } from '../support/manual-clock.js'
import { tempDir } from '../support/tmp.js'

const isUnwritten = ({ message }: Problem): boolean => message.includes('cannot be written')

/** Waits until `status` names exactly these files as unwritable. */
async function untilUnwritten(api: NodeApi, files: readonly string[]): Promise<readonly Problem[]> {
  const { problems } = await until(api, 'node.status', {}, (now) => {
    const found = now.problems.filter(isUnwritten)
    return found.length === files.length && files.every((file) => found.some((one) => one.message.startsWith(file)))
  })
  return problems
}

async function createToken(node: RunningNode, name: string): Promise<unknown> {
  return await apiOf(node)
    .call('token.create', { name, scopes: ['read'], ttlMs: 60_000 })
    .catch((error: unknown) => error)
}

test('each file of a home that takes nothing is a problem with its cause and a next step until it works again', async (t: Assert) => {
  const { optionsOf } = await localNodes(t)
  const options = await optionsOf('a', {})
  const { home, startFlags, audit } = options.home
  await fs.mkdir(`${startFlags}.tmp`, { recursive: true })
  let log: { readonly file: string; readonly error: unknown } | null = null
  const texts = { '--http': ['0'] }
  const node = await startNode({ ...options, memory: { texts, faults: [] }, logFault: () => log })
  t.teardown(() => node.close())
  const api = apiOf(node)
  const tokens = path.join(home, 'tokens.json')
  await untilUnwritten(api, [startFlags])

  await fs.mkdir(`${tokens}.tmp`)
  await createToken(node, 'one')
  await fs.rm(audit, { recursive: true })
  await untilUnwritten(api, [startFlags, tokens, audit])
  await fs.writeFile(audit, '')
  await fs.rmdir(`${tokens}.tmp`)
  t.absent((await createToken(node, 'two')) instanceof Error)
  log = { file: '/log', error: { code: 'ENOENT' } }
  const all = await untilUnwritten(api, [startFlags, path.join(audit, 'audit.ndjson'), '/log'])
  t.alike(
    all.filter(isUnwritten).map(({ code, next }) => [code, next.startsWith('ls -ld /')]),
    all.filter(isUnwritten).map(() => ['STORE_DAMAGED', true])
  )

  log = null
  await fs.rmdir(`${startFlags}.tmp`)
  await fs.rm(audit)
  await untilUnwritten(api, [])
  t.alike((await readStartFlags(startFlags)).texts, texts, 'the flags are in the home then')
  const { problems } = await until(api, 'node.status', {}, (now) =>
    now.problems.some(({ message }) => message.includes('the audit log is broken'))
  )
  const missed = problems.filter(({ message }) => message.includes('the audit log is broken'))
  t.comment(missed.map(({ message }) => message).join('; '))
  t.ok(
    missed.length > 0 && missed.every(({ next }) => next.includes('--verify')),
    'lines that were removed stay missed'
  )
})

test('an audit file that is removed or replaced while the node runs takes the next lines under its name', async (t: Assert) => {
  for (const change of [
    (file: string) => fs.rm(file),
    (file: string) => fs.rename(file, `${file}.old`),
    async (file: string) => {
      await fs.rename(file, `${file}.old`)
      await fs.writeFile(file, '')
    }
  ]) {
    const { start, homeOf } = await localNodes(t)
    const node = await start('a')
    await createToken(node, 'one')
    const file = path.join(homeOf('a').audit, 'audit.ndjson')
    await until(apiOf(node), 'node.status', {}, () => true)
    await node.close()
    const again = await start('a')
    await change(file)
    await createToken(again, 'two')
    await until(apiOf(again), 'node.status', {}, ({ problems }) =>
      problems.some(({ message }) => message.includes('the audit log is broken'))
    )
    t.ok((await fs.readFile(file, 'utf8')).includes('token-created'))
  }
})

test('a failed write of a document is tried again with the stored content, not with the refused one', async (t: Assert) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  const faults = new WriteFaults({ clock })
  const store = openNodeStore(dir, (file, failed) => faults.report(file, failed))
  await store.write('kept', 1)
  for (const name of ['kept', 'fresh']) {
    const file = path.join(dir, `${name}.json`)
    await fs.mkdir(`${file}.tmp`)
    // A document without a file is tried beside it.
    await fs.mkdir(`${file}.trial.tmp`)
    await t.exception(store.write(name, 2))
    t.is(faults.problems().length, 1, name)
    await fs.rmdir(`${file}.tmp`)
    await fs.rmdir(`${file}.trial.tmp`)
    clock.advance(2000)
    await untilTrue(() => faults.problems().length === 0, `${name} can be written again`)
  }
  t.alike([await store.read('kept'), await store.read('fresh')], [1, null])
  t.alike(await fs.readdir(dir), ['kept.json', 'kept.json.copy'])
  await fs.mkdir(path.join(dir, 'kept.json.tmp'))
  await t.exception(store.write('kept', 3))
  await faults.close()
  await t.exception(store.write('kept', 4))
  t.is(clock.pending, 0, 'no try begins after the end')
})
