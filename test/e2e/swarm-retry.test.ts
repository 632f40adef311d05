import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmResults } from '../../src/ports/swarm-api.js'
import { localMesh, untilAgent } from '../support/nodes.js'
import { job } from '../support/swarm-agents.js'

test('swarm retry does failed items again with the inputs of their template, and no other item', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a')
  const dir = await mesh.dir()
  const mark = path.join(dir, 'mended')
  const program = `(() => { if (input.word !== 'good' && !require('fs').existsSync(${JSON.stringify(mark)})) process.exit(3); return { did: input.word } })()`
  await fs.writeFile(path.join(a.home, 'agents', 'do.md'), job('do', program))
  await untilAgent(a, 'do@a')
  const items = path.join(dir, 'items.txt')
  await fs.writeFile(items, 'good\nbad\nworse\n')
  const run = ['swarm', 'run', 'go', '--capability', 'job.do', '--items', items, '--input', '{"word":"{item}"}']
  const first = await a.cli([...run, '--retries', '0', '--json'])
  t.is(first.code, 8)
  const { id } = JSON.parse(first.stdout.trim().split('\n').at(-1) ?? '') as { id: string }
  const unknown = await a.cli(['swarm', 'retry', id, '--unknown'])
  t.is(unknown.code, 9)
  t.ok(unknown.stderr.includes(`no item of swarm ${id} is unknown; 2 failed`), unknown.stderr)
  await fs.writeFile(mark, '')
  const again = await a.cli(['swarm', 'retry', id, '--json'])
  t.is(again.code, 0, again.stderr)
  const done = JSON.parse(again.stdout.trim().split('\n').at(-1) ?? '') as SwarmResults
  t.alike(
    done.results.map(({ item, result }) => [item, result]),
    [
      ['bad', { did: 'bad' }],
      ['worse', { did: 'worse' }]
    ]
  )
  const none = await a.cli(['swarm', 'retry', done.id])
  t.is(none.code, 9)
  t.ok(none.stderr.includes(`no item of swarm ${done.id} failed`), none.stderr)
  const each = await a.cli(['swarm', 'run', 'go', '--capability', 'job.do', '--json'])
  const { id: other } = JSON.parse(each.stdout.trim().split('\n').at(-1) ?? '') as { id: string }
  t.is((await a.cli(['swarm', 'retry', other])).code, 2)
})

test('swarm retry after --fail-fast says how many items it leaves out: all without an outcome', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a')
  await fs.writeFile(path.join(a.home, 'agents', 'do.md'), job('do', '(() => process.exit(3))()'))
  await untilAgent(a, 'do@a')
  const items = path.join(await mesh.dir(), 'items.txt')
  await fs.writeFile(items, Array.from({ length: 40 }, (_, i) => `item ${i}\n`).join(''))
  const run = ['swarm', 'run', 'go', '--capability', 'job.do', '--items', items, '--retries', '0', '--fail-fast']
  const first = await a.cli([...run, '--json'])
  const { id, results } = JSON.parse(first.stdout.trim().split('\n').at(-1) ?? '') as SwarmResults
  const again = await a.cli(['swarm', 'retry', id, '--detach'])
  t.is(again.code, 0, again.stderr)
  const open = 40 - results.length
  t.ok(open > 0 && again.stderr.includes(`not tried again: ${open} items of swarm ${id}`), again.stderr)
})
