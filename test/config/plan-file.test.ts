import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'
import { parsePlan, readPlanFile } from '../../src/config/plan-file.js'
import { checkPlan } from '../../src/domain/swarm/plan.js'
import { failsWith } from '../support/fails.js'
import { tempDir } from '../support/tmp.js'

test('the plan that USING.md shows is a good one', async (t) => {
  const [, text = ''] = /```yml\n([\s\S]*?)```/.exec(fs.readFileSync('docs/USING.md', 'utf8')) ?? []
  t.alike(checkPlan((await parsePlan(text, 'plan.yaml')).value).ok, true)
})

test('the keys of a task that USING.md lists are all that there are', (t) => {
  const [, list = ''] = /Keys of a task:\n\n((?:- .*\n)+)/.exec(fs.readFileSync('docs/USING.md', 'utf8')) ?? []
  const named = list
    .split('\n')
    .flatMap((line) => [...line.matchAll(/(?:^- |[,;] )`([a-z]+)`(?=[,:])/g)].map(([, key]) => key))
  const keys = ['id', 'capability', 'labels', 'needs', 'when', 'input', 'items', 'strategy', 'answers', 'judge']
  const found = checkPlan({ tasks: [Object.fromEntries(keys.map((key) => [key, null]))] })
  t.absent(found.ok || found.faults.some(({ reason }) => reason.startsWith('there is no key')))
  t.alike(named, keys)
})

test('every place of a plan has its line, one that is not there that of the nearest', async (t) => {
  const { placeOf } = await parsePlan(
    'tasks:\n  - id: a\n    needs:\n      - x\n      - y\n    input: { deep:\n        [1] }\n',
    'p.yaml'
  )
  const line = (...keys: (string | number)[]): string => placeOf(keys)
  t.alike(
    [line('tasks', 0, 'needs', 1), line('tasks', 0, 'input', 'deep', 0), line('tasks', 0, 'capability'), line()],
    ['p.yaml:5', 'p.yaml:7', 'p.yaml:2', 'p.yaml:1']
  )
})

test('all errors of YAML syntax are reported at once', async (t) => {
  const text = 'tasks:\n  - id: a\n    id: b\n  - id: c\n    needs: []\n    needs: []\n'
  const { message, data } = await failsWith(t, 'USAGE', () => parsePlan(text, 'p.yaml'))
  t.is(message, 'the plan has 2 faults')
  const { faults } = data as { faults: { place: string; reason: string }[] }
  t.alike(
    faults.map(({ place, reason }) => `${place} ${reason}`),
    ['p.yaml:3 the key stands there twice', 'p.yaml:6 the key stands there twice']
  )
})

test('a plan that is nested deeper than JSON may be is refused before values are made of it', async (t) => {
  const count = 50_000
  for (const text of [
    '['.repeat(count),
    `tasks: ${'['.repeat(count)}${']'.repeat(count)}`,
    `${'- '.repeat(count)}x`,
    `${'? '.repeat(count)}x`
  ]) {
    const { message } = await failsWith(t, 'USAGE', () => parsePlan(text, 'p.yaml'))
    t.is(message, 'p.yaml: a plan is nested no deeper than 32')
  }
  const text = `${'['.repeat(32)}${']'.repeat(32)}`
  t.is(JSON.stringify((await parsePlan(text, 'p.yaml')).value), text)
})

test('invalid YAML, aliases, and a large file are refused with the line', async (t) => {
  t.ok((await failsWith(t, 'USAGE', () => parsePlan('a: 1\nb: [\n', 'p.yaml'))).message.startsWith('p.yaml:'))
  await failsWith(t, 'USAGE', () => parsePlan('a: &x 1\nb: *x\n', 'p.yaml'))
  const file = path.join(await tempDir(t), 'plan.yaml')
  await failsWith(t, 'USAGE', () => readPlanFile(file))
  fs.writeFileSync(file, `# ${'x'.repeat(262_144)}`)
  t.ok((await failsWith(t, 'USAGE', () => readPlanFile(file))).message.includes('262144'))
  fs.writeFileSync(file, 'tasks: []\n')
  t.alike((await readPlanFile(file)).value, { tasks: [] })
})

test('a plan that is not there, a directory, no text, or empty is refused in plain words with a next step', async (t) => {
  const dir = await tempDir(t)
  const [bytes, empty] = [path.join(dir, 'bytes'), path.join(dir, 'empty')]
  fs.writeFileSync(bytes, Uint8Array.of(0xff, 0xfe))
  fs.writeFileSync(empty, '# nothing\n')
  const cases: [string, string][] = [
    [path.join(dir, 'none'), 'there is no such file'],
    [dir, 'it is a directory'],
    [bytes, 'it is no UTF-8 text'],
    [empty, 'is empty']
  ]
  for (const [file, expected] of cases) {
    const { message, next } = await failsWith(t, 'USAGE', () => readPlanFile(file))
    t.ok(message.endsWith(expected) && !/E[A-Z]{4,}|illegal operation/.test(message), message)
    t.alike(next, ['a2a-node swarm run --help'])
  }
})
