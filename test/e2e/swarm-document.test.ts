import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import type { DocumentReading } from '../../src/ports/document-api.js'
import { ROOT, localMesh, until, untilAgent } from '../support/nodes.js'

const AGENT = `---
name: finder
description: Notes what it finds.
a2a:
  version: 0.1.0
  capabilities:
    - id: find.note
      description: Notes what it finds
      input: { type: object }
      idempotent: true
  runtime: { type: module, path: ./finder.mjs }
---
`

const MODULE = `import { connect } from '${pathToFileURL(path.join(ROOT, 'dist/client.js')).href}'
export default {
  async run({ swarm, input }) {
    const { value } = await connect().call('documents.edit', { document: swarm, edit: { type: 'map', set: { [input.item]: process.pid } } })
    return Object.keys(value).includes(input.item)
  }
}
`

test('the agents of a swarm write what they find into its document, and the launcher reads it', async (t) => {
  const mesh = await localMesh(t)
  const agents = path.join(await mesh.dir(), 'agents')
  await fs.mkdir(agents)
  await fs.writeFile(path.join(agents, 'finder.md'), AGENT)
  await fs.writeFile(path.join(agents, 'finder.mjs'), MODULE)
  const launcher = await mesh.start('a')
  const { code } = await launcher.api.call('invite.create', { trust: 'mine', uses: 2 })
  for (const name of ['b', 'c']) {
    await mesh.start(name, { join: code, args: ['--agents', agents] })
    await untilAgent(launcher, `finder@${name}`)
  }
  const items = Array.from({ length: 12 }, (_, index) => `item-${index}`)
  const run = await launcher.cli(
    ['swarm', 'run', 'find', '--capability', 'find.note', '--items', '-', '--json'],
    items.join('\n')
  )
  t.is(run.code, 0, run.stderr)
  const { id } = JSON.parse(run.stdout.trim().split('\n').at(-1) ?? '') as { id: string }
  await until(
    launcher.api,
    'documents.read',
    { document: id, type: 'map' },
    ({ value }) => Object.keys(value as object).length === items.length
  )
  const { name, value } = await launcher.json<DocumentReading>(['doc', 'get', id, '--type', 'map'])
  t.is(name, id)
  t.alike(Object.keys(value as object).sort(), [...items].sort())
  t.is(new Set(Object.values(value as object)).size, 2, 'both of them wrote')
})
