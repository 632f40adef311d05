import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { writeNewAgents } from '../../../../src/adapters/agents/process/new-files.js'
import { readAgentFile } from '../../../../src/adapters/agents/files/read-agent-file.js'
import { STARTER_IDS } from '../../../../src/adapters/agents/starters/starters.js'
import { runAgentFile } from '../../../../src/compose/compose.js'
import { DEFAULT_TIER_ASSIGNMENTS } from '../../../../src/domain/routing/tier-rules.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

test('a new agent works as it is, with the tier of its node', async (t) => {
  const dir = path.join(await tempDir(t), 'agents')
  const [made] = await writeNewAgents({ dir, name: 'tester', preset: null })
  t.alike(made, { id: 'tester', tier: null, file: path.join(dir, 'tester.md') })
  const read = await readAgentFile(made?.file ?? '', createSchemaCompiler())
  t.is(read.ok && read.definition.tier, null)
  const outcome = await runAgentFile(made?.file ?? '', null, { input: { text: 'hi' } })
  t.alike(outcome.ok && (outcome.result as { input: unknown }).input, { text: 'hi' })
})

test('the planetary preset is the 21 agents of the default tiers, each a good file with its tier', async (t) => {
  const dir = await tempDir(t)
  const made = await writeNewAgents({ dir, name: null, preset: 'planetary' })
  const tiers: Record<string, unknown> = {}
  for (const { file, id } of made) {
    const read = await readAgentFile(file, createSchemaCompiler())
    t.ok(read.ok && read.definition.id === id && read.ignored.length === 0, id)
    tiers[id] = read.ok ? read.definition.tier : null
  }
  t.alike(tiers, DEFAULT_TIER_ASSIGNMENTS)
  t.is(made.length, 21)
  const only = await writeNewAgents({ dir: path.join(dir, 'one'), name: 'sun', preset: 'planetary' })
  t.alike(
    only.map(({ id, tier }) => [id, tier]),
    [['sun', 'L0']]
  )
})

test('no file is overwritten: when one is there, none is written', async (t) => {
  const dir = await tempDir(t)
  const mine = path.join(dir, 'titan.md')
  await fs.writeFile(mine, 'mine')
  const error = await failsWith(t, 'FILE_EXISTS', () => writeNewAgents({ dir, name: null, preset: 'planetary' }))
  t.ok(error.message.includes(mine))
  t.alike(error.next, [`a2a-node agents check ${mine}`], 'the next step names the file')
  t.is(await fs.readFile(mine, 'utf8'), 'mine')
  t.alike(await fs.readdir(dir), ['titan.md'])
})

test('an id that another file, another directory or a starter of the node has is refused, and nothing is written', async (t) => {
  const dir = await tempDir(t)
  const [first, second] = [path.join(dir, 'one'), path.join(dir, 'two')]
  for (const [place, id] of [
    [first, 'ant'],
    [second, 'bee']
  ] as const) {
    await fs.mkdir(place)
    await fs.writeFile(path.join(place, `its ${id}.md`), agentText(id))
  }
  const wanted = { dir: first, preset: null, others: { dirs: [second, path.join(dir, 'none')], starters: true } }
  for (const [name, next] of [
    ['ant', `a2a-node agents check '${path.join(first, 'its ant.md')}'`],
    ['bee', `a2a-node agents check '${path.join(second, 'its bee.md')}'`],
    ...STARTER_IDS.map((id) => [id, `a2a-node agents new my-${id}`])
  ] as const) {
    const error = await failsWith(t, 'CONFLICT', () => writeNewAgents({ ...wanted, name: name ?? '' }))
    t.is(error.next[0], next)
  }
  t.alike(await fs.readdir(first), ['its ant.md'])
  t.is(
    (await writeNewAgents({ ...wanted, name: 'text', others: { dirs: [], starters: false } })).length,
    1,
    'without starters it is free'
  )
})

test('a name that no agent may have, or that leads elsewhere, is refused and leaves nothing', async (t) => {
  const dir = path.join(await tempDir(t), 'agents')
  for (const name of [
    '',
    'Upper',
    'operator',
    '*',
    '../escape',
    'a/b',
    'a b',
    'x'.repeat(65),
    '.hidden',
    '"',
    'a\nb',
    '${x}',
    null
  ])
    await failsWith(t, 'USAGE', () => writeNewAgents({ dir, name, preset: null }))
  await failsWith(t, 'USAGE', () => writeNewAgents({ dir, name: null, preset: 'constructor' }))
  const error = await failsWith(t, 'AGENT_NOT_FOUND', () =>
    writeNewAgents({ dir, name: 'vulcan', preset: 'planetary' })
  )
  t.is((error.data as { names: string[] }).names.length, 21)
  t.absent('candidates' in (error.data as object), 'which would be printed once more')
  t.ok(error.message.includes('titan'), 'the preset is listed')
  t.alike(error.next, ['a2a-node agents new --help'], 'which needs no running node')
  await t.exception(fs.stat(dir), /ENOENT/)
  for (const name of ['null', '1', 'true', '1.5', 'no'])
    t.is((await writeNewAgents({ dir, name, preset: null }))[0]?.id, name)
})
