import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import { localMesh, untilAgent } from '../support/nodes.js'

test('large attachments travel as bytes, whole and unchanged, also binary ones', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code, env: { A2A_NODE_NODE_LABELS: 'far' } })
  await untilAgent(a, 'text@b')
  const dir = await mesh.dir()
  const bytes = Buffer.alloc(1024 * 1024, 0)
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >> 8)) & 0xff
  await fs.writeFile(path.join(dir, 'binary.bin'), bytes)
  await fs.writeFile(path.join(dir, 'plain.txt'), 'zeile äöü\n'.repeat(80_000))
  const run = await a.cli([
    'swarm',
    'run',
    'count',
    '--capability',
    'text.stats',
    '--items',
    `${dir}/*`,
    '--attach',
    '--label',
    'far',
    '--json'
  ])
  t.is(run.code, 0, run.stderr)
  const items = run.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SwarmEvent)
    .filter((one) => one.type === 'item')
  const { createHash } = await import('node:crypto')
  for (const one of items) {
    const content = await fs.readFile(one.item)
    t.alike(
      { bytes: (one.result as { bytes: number }).bytes, sha256: (one.result as { sha256: string }).sha256 },
      { bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') },
      path.basename(one.item)
    )
  }
  t.alike(
    items.map((one) => one.agent),
    ['text@b', 'text@b'],
    'both crossed the network'
  )
  await fs.writeFile(path.join(dir, 'too-large.bin'), Buffer.alloc(15 * 1024 * 1024 + 1))
  const tooLarge = await b.cli([
    'swarm',
    'run',
    'count',
    '--capability',
    'text.stats',
    '--items',
    `${dir}/*`,
    '--attach'
  ])
  t.is(tooLarge.code, 2)
  t.ok(/too-large\.bin/.test(tooLarge.stderr), 'the file is named')
})
