import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { SwarmEvent } from '../../src/ports/swarm-api.js'
import { testMesh, untilAgent } from '../support/nodes.js'

test('large attachments travel as bytes, whole and unchanged, also binary ones', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const [a, b] = await mesh.meshOf('a', 'b')
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
  t.is(new Set(items.map((one) => one.agent)).size, 2, 'one of them crossed the network')
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
