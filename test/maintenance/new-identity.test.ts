import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { resolveHome } from '../../src/config/paths.js'
import { openNodeStore } from '../../src/adapters/storage/home/node-store.js'
import { assertIdentityWhole } from '../../src/adapters/storage/home/former-node.js'
import { Output } from '../../src/cli/terminal/output.js'
import { nameBeside } from '../../src/compose/node-record.js'
import { type IdentityOptions, giveNewIdentity, type NewIdentity } from '../../src/maintenance/new-identity.js'
import { repairHome } from '../../src/maintenance/doctor-stores.js'
import { failsWith } from '../support/fails.js'
import { tempDir } from '../support/tmp.js'

const OPTIONS: IdentityOptions = {
  name: 'new',
  configured: null,
  isForced: true,
  now: 0,
  agrees: () => Promise.resolve(true)
}
const OF_USER = [
  'agents',
  'config.yaml',
  'llm-days.json',
  'llm-days.json.copy',
  'mcp-files.json',
  'mcp-files.json.copy',
  'notes.json',
  'policy.seen',
  'policy.yaml'
]

/** A home with files of every kind; its stores are no more than directories. */
async function madeHome(t: Assert) {
  const home = resolveHome({ home: await tempDir(t) })
  const documents = openNodeStore(home.home)
  for (const name of ['seed', 'mesh', 'node', 'tokens', 'oauth-clients', 'cards', 'mcp-files', 'llm-days'])
    await documents.write(name, { chain: [] })
  for (const dir of ['ledger', 'audit', 'documents', 'agents', 'run', 'store.damaged-2026-01-01T000000Z']) {
    await fs.mkdir(path.join(home.home, dir))
    await fs.writeFile(path.join(home.home, dir, 'agent-1.json'), '{}')
  }
  for (const name of ['config.yaml', 'policy.yaml', 'policy.seen', 'audit.seen', 'notes.json'])
    await fs.writeFile(path.join(home.home, name), '{}')
  return home
}

async function left(home: string): Promise<string[]> {
  return (await fs.readdir(home)).filter((name) => name !== 'run' && !name.startsWith('former-node')).sort()
}

test('settings, rules, agents, accepted imports and foreign files stay; all of the former node goes, records of its processes too', async (t) => {
  const home = await madeHome(t)
  const { movedTo } = (await giveNewIdentity(home, OPTIONS)) as NewIdentity
  t.alike(await left(home.home), [...OF_USER, 'node.json', 'node.json.copy'].sort())
  t.alike(await fs.readdir(home.run), [], 'a start would kill the processes that they name')
  const moved = await fs.readdir(movedTo)
  for (const name of [
    'seed.json',
    'mesh.json',
    'tokens.json',
    'oauth-clients.json',
    'ledger',
    'audit',
    'documents',
    'audit.seen'
  ])
    t.ok(moved.includes(name), name)
  t.alike(await fs.readdir(path.join(movedTo, 'run')), ['agent-1.json'])
})

test('a change cut off at any of its renames is refused by a start and a repair, and the next run finishes it with nothing lost', async (t) => {
  const rename = fs.rename
  t.teardown(() => {
    fs.rename = rename
  })
  for (let cut = 0, isCut = true; isCut; cut++) {
    const home = await madeHome(t)
    let renames = 0
    fs.rename = async (from, to) => {
      if (String(from).includes('node.pid')) return await rename(from, to)
      if (renames++ >= cut) throw Object.assign(new Error('cut off'), { code: 'EIO' })
      await rename(from, to)
    }
    isCut = await giveNewIdentity(home, OPTIONS).then(
      () => false,
      () => true
    )
    fs.rename = rename
    if (isCut) {
      await failsWith(t, 'CONFLICT', () => assertIdentityWhole(home.home))
      await failsWith(t, 'CONFLICT', () => repairHome(home, 0))
      const { reason } = (await giveNewIdentity(home, { ...OPTIONS, isForced: false })) as NewIdentity
      t.ok(reason?.includes('interrupted'))
    }
    await assertIdentityWhole(home.home)
    t.alike(await left(home.home), [...OF_USER, 'node.json', 'node.json.copy'].sort(), `cut at ${cut}`)
    const former = path.join(home.home, 'former-node-1970-01-01T000000Z')
    const moved = await fs.readdir(former)
    t.alike(await openNodeStore(former).read('node'), { chain: [] }, 'the record of the new node does not replace it')
    t.is(moved.filter((name) => name.startsWith('seed.json')).length, 2)
    t.alike(await openNodeStore(home.home).read('node'), { name: 'new' })
    if (!isCut) t.ok(cut > 15, `${cut} renames`)
  }
})

test('linked documents of the node and the rest of an interrupted write go too, and links to foreign files stay', async (t) => {
  const home = await madeHome(t)
  const elsewhere = await tempDir(t)
  const at = (name: string): string => path.join(home.home, name)
  await fs.rm(at('seed.json.copy'))
  await fs.rename(at('seed.json'), path.join(elsewhere, 'seed.json'))
  await fs.symlink(path.join(elsewhere, 'seed.json'), at('seed.json'))
  await fs.symlink(path.join(elsewhere, 'gone.json'), at('gone.json'))
  await fs.symlink(elsewhere, at('place.json'))
  await fs.copyFile(path.join(elsewhere, 'seed.json'), at('mesh.json.copy.tmp'))
  await fs.writeFile(at('draft.json.tmp'), '{}')
  const { movedTo } = (await giveNewIdentity(home, OPTIONS)) as NewIdentity
  t.is(await openNodeStore(home.home).read('seed'), null, 'a start would go on with the former key')
  t.alike(
    await left(home.home),
    [...OF_USER, 'draft.json.tmp', 'gone.json', 'node.json', 'node.json.copy', 'place.json'].sort()
  )
  t.alike(await openNodeStore(movedTo).read('seed'), { chain: [] })
})

test('a directory that is no home of a node is refused, and nothing in it is made or changed', async (t) => {
  const home = resolveHome({ home: await tempDir(t) })
  for (const dir of ['store', 'documents', 'audit']) await fs.mkdir(path.join(home.home, dir))
  await fs.writeFile(path.join(home.store, 'notes.txt'), 'mine')
  await failsWith(t, 'CONFLICT', () => giveNewIdentity(home, OPTIONS))
  t.alike((await fs.readdir(home.home)).sort(), ['audit', 'documents', 'store'])
  t.alike(await fs.readdir(home.store), ['notes.txt'])
})

test('a part that is mounted from elsewhere is named, and its records of processes go', async (t) => {
  const rename = fs.rename
  t.teardown(() => {
    fs.rename = rename
  })
  const [home, foreign] = [await madeHome(t), 'foreign.sock']
  await fs.writeFile(path.join(home.run, foreign), '')
  let busy = 'EBUSY'
  fs.rename = async (from, to) => {
    const code = path.dirname(String(to)).endsWith('moving/run') ? 'EXDEV' : String(from) === home.audit ? busy : ''
    if (code !== '') throw Object.assign(new Error(code), { code })
    await rename(from, to)
  }
  const error = await failsWith(t, 'CONFLICT', () => giveNewIdentity(home, OPTIONS))
  t.ok(error.message.startsWith(`${home.audit} is mounted from elsewhere`), error.message)
  busy = ''
  await giveNewIdentity(home, { ...OPTIONS, isForced: false })
  t.alike(await fs.readdir(home.run), [foreign])
})

test('nothing is changed when the person does not agree', async (t) => {
  const home = await madeHome(t)
  const before = await left(home.home)
  t.is(await giveNewIdentity(home, { ...OPTIONS, agrees: () => Promise.resolve(false) }), null)
  t.alike(await left(home.home), before)
})

test('the name of the new node is never that of the former one, unless a person gives it', (t) => {
  t.is(nameBeside('b', 'c', 'd'), 'c')
  t.is(nameBeside('b', null, 'd'), 'd')
  const machine = nameBeside('b', null, 'b')
  t.not(machine, 'b')
  t.is(nameBeside(machine, null, machine), `${machine}-2`)
  t.is(nameBeside('b', 'b', null), 'b')
})

test('a refused name of the new node leads to the same command with a name that works', async (t) => {
  for (const [name, better] of [
    ['-x', 'x'],
    ['--json', 'json'],
    ['a\u200bb', 'ab'],
    ['\u2014 gpu box', "'gpu box'"],
    ['***', '<name>']
  ] as const) {
    const { code, next } = await failsWith(t, 'USAGE', () => nameBeside('b', name, null))
    for (const typed of [
      ['doctor', '--new-identity', '--force', '--name', name],
      ['doctor', `--name=${name}`, '--new-identity', '--force']
    ]) {
      const output = new Output({
        json: false,
        color: 'never',
        out: process.stdout,
        err: process.stderr,
        env: {},
        typed
      })
      t.alike(output.nextOf({ code, next }), [`a2a-node doctor --new-identity --force --name ${better}`])
    }
    if (better !== '<name>') t.is(nameBeside('b', better.replaceAll("'", ''), null), better.replaceAll("'", ''))
  }
})
