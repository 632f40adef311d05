import { spawnSync } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { COMMANDS } from '../../src/cli/terminal/table.js'
import { readStartFlags, startFlagsText } from '../../src/config/start-flags.js'
import { REMEMBERED, START_OPTIONS } from '../../src/config/start-options.js'
import { tempDir } from '../support/tmp.js'

test('each option of start is remembered, or good for one run with a reason', (t: Assert) => {
  const options = COMMANDS.find(({ name }) => name === 'start')?.options ?? []
  const flags = options.map(({ flags: text }) => /--[a-z-]+/.exec(text)?.[0] ?? '')
  const forgets = REMEMBERED.map(({ flag }) => flag.replace('--', '--no-'))
  t.alike(flags.filter((flag) => !forgets.includes(flag)).sort(), START_OPTIONS.map(({ flag }) => flag).sort())
  t.alike(
    flags.filter((flag) => forgets.includes(flag)).sort(),
    forgets.sort(),
    'each remembered flag can be forgotten'
  )
  t.absent(
    REMEMBERED.some(({ flag }) => flag === '--join'),
    'an invite code is never kept'
  )
})

test('remembered flags are read as they were written', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'start.flags')
  const texts = {
    '--network': ['private'],
    '--bootstrap': ['a.example:1,[::1]:2'],
    '--serve-bootstrap': ['10.0.0.5:29737'],
    '--agents': ['/a b', '/ü"\\'],
    '--http': ['[::]:0']
  }
  await writeFile(file, startFlagsText(texts))
  t.alike(await readStartFlags(file), { texts, faults: [] })
  t.is(startFlagsText({}), '')
  t.alike(await readStartFlags(`${file}.none`), { texts: {}, faults: [] })
  const most = { '--agents': Array.from({ length: 64 }, (_, i) => `/${String(i).padEnd(4095, '\u0001')}`) }
  t.ok(startFlagsText(most).length > 262_144)
})

test('a flag that is not allowed is left out and named, and the others are used', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'start.flags')
  const wrong: Record<string, string[]> = {
    '--network': ['moon'],
    '--bootstrap': ['nowhere'],
    '--serve-bootstrap': ['x:y'],
    '--agents': ['relative'],
    '--http': ['1', '2']
  }
  for (const [flag, bad] of Object.entries(wrong)) {
    const other = flag === '--http' ? { '--network': ['local'] } : { '--http': ['9001'] }
    await writeFile(
      file,
      JSON.stringify({ version: 1, flags: { [flag]: bad, ...other, '--future': ['x'], '--join': ['code'] } })
    )
    const { texts, faults } = await readStartFlags(file)
    t.alike(texts, other, flag)
    t.alike(faults, [`the value of ${flag} in ${file} is not allowed`])
  }
})

test('a file of remembered flags that is damaged, too large, a pipe or a directory is a fault and never an error', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'start.flags')
  for (const text of [
    '',
    '{',
    'null',
    '{"flags":[]}',
    '{"flags":{"--http":"9001"}}',
    '{"flags":{"--http":[9001]}}',
    '{"flags":{"--http":["9001"]}}'.padEnd(1_310_721)
  ]) {
    await writeFile(file, text)
    t.alike(await readStartFlags(file), { texts: {}, faults: [`${file} is damaged`] }, text.slice(0, 30))
  }
  await rm(file)
  spawnSync('mkfifo', [file])
  t.alike((await readStartFlags(file)).faults, [`${file} is damaged`])
  await rm(file)
  await mkdir(file)
  t.is((await readStartFlags(file)).faults.length, 1)
})

test('no bytes of the file make remembered flags of a form that start would refuse', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'start.flags')
  const value = fc.oneof(
    fc.array(fc.oneof(fc.string(), fc.constantFrom('local', '9001', '/x', 'h:1')), { maxLength: 3 }),
    fc.jsonValue()
  )
  const flags = fc.dictionary(
    fc.oneof(fc.constantFrom(...REMEMBERED.map(({ flag }) => flag), '__proto__'), fc.string()),
    value
  )
  await fc.assert(
    fc.asyncProperty(flags, async (given) => {
      await writeFile(file, JSON.stringify({ version: 1, flags: given }))
      const { texts } = await readStartFlags(file)
      await writeFile(file, startFlagsText(texts) || '{"flags":{}}')
      const again = await readStartFlags(file)
      return again.faults.length === 0 && JSON.stringify(again.texts) === JSON.stringify(texts)
    }),
    { numRuns: 200 }
  )
  t.pass('each flag read is allowed')
})
