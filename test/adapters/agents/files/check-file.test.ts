import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { checkAgentDirectory, checkAgentFile } from '../../../../src/adapters/agents/files/check-file.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { tempDir } from '../../../support/tmp.js'

test('a good file is summed up, with the keys that mean nothing here', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'ant.md')
  await fs.writeFile(file, agentText('ant').replace('description:', 'color: red\nmodel: opus\ndescription:'))
  const report = await checkAgentFile(file)
  t.is(report.ok, true)
  t.is(report.id, 'ant')
  t.alike(report.capabilities, ['subject.do'])
  t.alike(report.ignored, ['color'])
  t.alike(report.faults, [])
})

test('every fault of a broken file is reported, with file and line', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'ant.md')
  await fs.writeFile(file, agentText('ant', ['  tier: L9', '  limts: {}']))
  const report = await checkAgentFile(file)
  t.is(report.ok, false)
  t.is(report.id, '')
  t.alike(
    report.faults.map((fault) => [fault.file, fault.line]),
    [
      [file, 8],
      [file, 9]
    ]
  )
})

test('an absent module is reported beside all other faults, and no more once it exists', async (t: Assert) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'ant.md')
  await fs.writeFile(file, agentText('ant', ['  tier: L9', '  limts: {}'], '{ type: module, path: ./ant.mjs }'))
  const reasons = async (): Promise<string[]> => (await checkAgentFile(file)).faults.map(({ reason }) => reason)
  const missing = `a2a.runtime.path: there is no file ${path.join(dir, 'ant.mjs')}`
  const before = await reasons()
  t.is(before.length, 3)
  t.ok(before.includes(missing), before.join('; '))
  await fs.writeFile(path.join(dir, 'ant.mjs'), 'export default {}')
  t.alike(
    await reasons(),
    before.filter((reason) => reason !== missing)
  )
})

test('an agent of another sandbox than that of its node is a fault, with its line', async (t: Assert) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'ant.md')
  await fs.writeFile(file, agentText('ant', ['  sandbox: lab']))
  for (const report of [await checkAgentFile(file, 'ci'), ...(await checkAgentDirectory(dir, 'ci'))]) {
    t.is(report.ok, false)
    t.alike(
      report.faults.map((one) => [one.file, one.line]),
      [[file, 8]]
    )
    t.ok(
      report.faults[0]?.reason.startsWith(
        'a2a.sandbox: it asks for the sandbox lab, but this node is certified for ci alone'
      )
    )
  }
  for (const sandbox of ['lab', null]) t.is((await checkAgentFile(file, sandbox)).ok, true)
})

test('a file that is not there is a fault', async (t: Assert) => {
  const report = await checkAgentFile('/no/such/agent.md')
  t.is(report.ok, false)
  t.is(report.faults[0]?.reason, 'there is no such file')
})

test('of a directory every agent file is checked, and an id that two of them have is a fault of the later', async (t: Assert) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'a.md'), agentText('ant'))
  await fs.writeFile(path.join(dir, 'b.md'), agentText('ant'))
  await fs.writeFile(path.join(dir, 'c.md'), agentText('cat', ['  limts: {}']))
  await fs.writeFile(path.join(dir, 'notes.txt'), 'no agent')
  const reports = await checkAgentDirectory(dir)
  t.alike(
    reports.map((one) => [path.basename(one.file), one.ok, one.faults.map((fault) => fault.line)]),
    [
      ['a.md', true, []],
      ['b.md', false, [2]],
      ['c.md', false, [8]]
    ]
  )
  t.ok(reports[1]?.faults[0]?.reason.includes('a.md'))
  t.is((await checkAgentDirectory(path.join(dir, 'none')))[0]?.ok, false)
})

test('an id that a starter has is a warning', async (t: Assert) => {
  const file = path.join(await tempDir(t), 'x.md')
  await fs.writeFile(file, agentText('text'))
  const { ok, warnings } = await checkAgentFile(file)
  t.alike(
    [ok, warnings],
    [true, [{ file, line: 2, reason: 'the starter agent text goes before it, unless agents.starters is false' }]]
  )
})

test('a program that is not there, or may not be executed, is a warning: the file itself is good', async (t: Assert) => {
  const dir = await tempDir(t)
  const plain = path.join(dir, 'plain')
  await fs.writeFile(plain, '', { mode: 0o600 })
  const warnings = async (runtime: string): Promise<unknown[]> => {
    const file = path.join(dir, 'ant.md')
    await fs.writeFile(file, agentText('ant', [], runtime))
    const report = await checkAgentFile(file)
    t.is(report.ok, true, runtime)
    return report.warnings.map((one) => [one.file === file && one.line !== null, one.reason])
  }
  t.alike(await warnings('{ type: command, command: [sh, -c, "true"] }'), [])
  for (const [runtime, reason] of [
    ['[no-such-program-here]', 'a2a.runtime.command: no program no-such-program-here is found in PATH'],
    ['[./none]', `a2a.runtime.command: there is no program ${path.join(dir, 'none')}`],
    ['[./plain]', `a2a.runtime.command: ${plain} may not be executed`],
    ['[sh], env: { PATH: /none }', 'a2a.runtime.command: no program sh is found in PATH'],
    ['[sh], cwd: gone', `a2a.runtime.cwd: there is no directory ${path.join(dir, 'gone')}`]
  ])
    t.alike(await warnings(`{ type: command, command: ${runtime} }`), [[true, reason]])
})
