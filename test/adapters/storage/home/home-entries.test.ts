import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { entriesOfHome } from '../../../../src/adapters/storage/home/former-node.js'
import { openNodeStore } from '../../../../src/adapters/storage/home/node-store.js'
import { tempDir } from '../../../support/tmp.js'

test('a directory of the user with names of a home has no entries of a node, with a document of a node only marked ones', async (t) => {
  const home = await tempDir(t)
  for (const dir of ['documents', 'ledger', 'store', 'audit', 'agents']) {
    await fs.mkdir(path.join(home, dir))
    await fs.writeFile(path.join(home, dir, 'letter.txt'), 'mine')
  }
  for (const name of ['node.json', 'package.json', 'package.json.copy', 'config.yaml'])
    await fs.writeFile(path.join(home, name), '{}')
  t.alike(await entriesOfHome(home), [])
  t.alike(await entriesOfHome(path.join(home, 'none')), [])

  await openNodeStore(home).write('seed', { key: 'k' })
  await fs.writeFile(path.join(home, 'store', 'CORESTORE'), '')
  await fs.mkdir(path.join(home, 'former-node-2026-11-29T100000Z'))
  const found = await entriesOfHome(home)
  t.alike(
    [...found].sort(),
    ['former-node-2026-11-29T100000Z', 'seed.json', 'seed.json.copy', 'store'],
    'documents, ledger and audit have no mark of a node'
  )
  t.ok(
    found.slice(-2).every((name) => name.startsWith('seed.json')),
    'another run finds an interrupted removal'
  )
})

test('imports, budgets, logs and damaged stores are entries of a home, links among them', async (t) => {
  const home = await tempDir(t)
  const documents = openNodeStore(home)
  for (const name of ['node', 'mcp-files', 'llm-days']) await documents.write(name, {})
  await fs.mkdir(path.join(home, 'store.damaged-2026-01-01T000000Z'))
  for (const name of ['node.log', 'node.log.1', 'ballast', 'policy.seen', 'policy.yaml'])
    await fs.writeFile(path.join(home, name), '')
  const elsewhere = await tempDir(t)
  await fs.writeFile(path.join(elsewhere, 'CORESTORE'), '')
  await fs.symlink(elsewhere, path.join(home, 'documents'))
  const found = new Set(await entriesOfHome(home))
  for (const name of ['mcp-files.json', 'llm-days.json.copy', 'node.log.1', 'ballast', 'policy.seen', 'documents'])
    t.ok(found.has(name), name)
  t.ok(found.has('store.damaged-2026-01-01T000000Z'))
  t.absent(found.has('policy.yaml'))
})
