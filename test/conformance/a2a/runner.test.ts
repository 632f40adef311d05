import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'
import { ROOT, localMesh } from '../../support/nodes.js'
import { type Case, readCases } from './cases.js'
import { faultOf, faultsOf, valuesAt } from './matches.js'
import { type CaseResult, type Expected, judge, readExpected } from './report.js'
import { streamFaults } from './streams.js'
import { runSuite } from './suite.js'
import { startWorld } from './world.js'

test('the data has the 111 cases of ACTS once each, at their levels, and each that differs says how', (t) => {
  const cases = readCases()
  const levels = (['must', 'should', 'may'] as const).map((level) => cases.filter((one) => one.level === level).length)
  t.alike([cases.length, new Set(cases.map(({ id }) => id)).size, levels], [111, 111, [65, 33, 13]])
  for (const { id, steps } of cases)
    t.ok(
      steps.some((step) => (step.see ?? step.fails ?? step.stream ?? step.asked ?? step.headers) !== undefined),
      `${id} expects something`
    )
})

/** A few cases of each file. */
const SOME = [
  'CARD-DISC-002',
  'CARD-SCHEMA-001',
  'CORE-SEND-001',
  'CORE-SEND-003',
  'CORE-LIST-002',
  'CORE-CANCEL-001',
  'CORE-MULTI-001',
  'CORE-HIST-005',
  'STREAM-SSE-003',
  'STREAM-MULTI-001',
  'CORE-ERR-001',
  'CORE-ERR-009',
  'JSONRPC-ERR-002',
  'SEC-AUTH-004',
  'SEC-PUSH-002',
  'DM-FMT-001',
  'REST-PD-001',
  'CLIENT-PARSE-003',
  'GRPC-STATUS-001'
]

test('cases of each kind pass at a node and one hop away, by JSON-RPC and REST', { timeout: 60_000 }, async (t) => {
  const world = await startWorld(t, await localMesh(t))
  const cases = readCases().filter(({ id }) => SOME.includes(id))
  t.is(cases.length, SOME.length)
  const report = judge(await runSuite(world, cases), [])
  t.ok(report.isGood, report.lines.join('\n'))
  t.ok(report.passed > SOME.length * 2, `${report.passed} passed`)
})

test('each rule of a matcher takes what fits and refuses what does not', (t) => {
  const rules: readonly (readonly [matcher: unknown, fits: unknown, differs: unknown])[] = [
    ['a', 'a', 'b'],
    [null, null, 0],
    [{ is: 'array' }, [], {}],
    [{ is: 'null' }, null, undefined],
    [{ absent: true }, undefined, null],
    [{ oneOf: [1, 2] }, 2, 3],
    [{ like: '^a' }, 'ab', 'ba'],
    [{ like: '.' }, 'x', ''],
    [{ least: 2 }, [1, 2], [1]],
    [{ most: 1 }, [1], [1, 2]],
    [{ most: 1 }, [], undefined],
    [{ some: { a: 1 } }, [{ a: 2 }, { a: 1 }], [{ a: 2 }]],
    [{ every: { a: 1 } }, [{ a: 1 }], [{ a: 1 }, { a: 2 }]],
    [{ every: { a: 1 } }, [], 'x'],
    [{ any: [{ absent: true }, 'x'] }, 'x', 'y'],
    [{ holds: ['a', 'b'] }, { x: ['ab'] }, { x: 'a' }],
    [{ inOrder: ['a', 'b'] }, ['a', 'x', 'b'], ['b', 'a']],
    [{ names: '^[a-z]+$' }, { a: { b: 1 } }, { a: { B: 1 } }],
    [{ shape: 'Task' }, { id: 'a', contextId: 'b', status: { state: 'TASK_STATE_WORKING' } }, { id: 'a' }],
    [{ least: 1, most: 1 }, [1], []]
  ]
  for (const [matcher, fits, differs] of rules) {
    t.is(faultOf(fits, matcher), null, `${JSON.stringify(matcher)} takes ${JSON.stringify(fits)}`)
    t.ok(faultOf(differs, matcher) !== null, `${JSON.stringify(matcher)} refuses ${JSON.stringify(differs)}`)
  }
  void t.exception(() => faultOf('a', { lik: 'a' }), /no such rule: lik/)
  t.alike(valuesAt({ a: [{ b: 1 }, { b: 2 }] }, 'a[*].b'), [1, 2])
  t.alike(faultsOf({ a: [{ b: 1 }, { b: 2 }] }, { 'a[*].b': 2, 'a[0].b': 1 }), [])
  t.is(faultsOf({ a: [] }, { 'a[*].b': { absent: true } }).length, 1, 'no value is no fit')
})

test('expectations of a stream refuse too few events, a wrong order, a wrong end and other events', (t) => {
  const status = (state: string) => ({ statusUpdate: { status: { state: `TASK_STATE_${state}` } } })
  const good = [status('WORKING'), { artifactUpdate: { artifact: { artifactId: 'a' } } }, status('COMPLETED')]
  const wants = { least: 3, most: 3, forward: true, last: { state: 'TASK_STATE_COMPLETED' } }
  t.alike(streamFaults(good, wants), [])
  t.is(streamFaults(good.slice(1), wants).length, 1)
  t.is(streamFaults([...good, status('COMPLETED')], wants).length, 2)
  t.is(streamFaults([status('COMPLETED'), good[1] ?? {}, status('WORKING')], wants).length, 2)
  const count = { of: { 'artifactUpdate.artifact.artifactId': 'a' }, least: 1 }
  t.alike(
    streamFaults(good, { count, some: { artifactUpdate: { is: 'object' } }, first: { state: { like: 'W' } } }),
    []
  )
  t.is(streamFaults([status('WORKING')], { count, some: { artifactUpdate: { is: 'object' } } }).length, 2)
  t.is(streamFaults(good, { every: { statusUpdate: { is: 'object' } } }).length, 1)
  t.alike(streamFaults(good.slice(1), { endsLike: 'other' }, good), [])
  t.is(streamFaults(good.slice(0, 2), { endsLike: 'other' }, good).length, 1)
  t.is(streamFaults([{ id: 1 }, { id: 2 }], { repeats: true }).length, 1)
  t.alike(streamFaults([{ id: 1 }, { id: 1 }], { repeats: true }), [])
})

test('a run is good only when exactly the expected failures fail', (t) => {
  const one = (id: string, state: CaseResult['state'], place = 'hop'): CaseResult => ({
    id,
    level: 'must',
    way: 'rest',
    place,
    state,
    ...(state === 'passed' ? {} : { why: 'because' })
  })
  const expected: Expected[] = [{ id: 'B', place: 'hop', why: 'it is not built yet' }]
  const isGood = (...results: CaseResult[]): boolean => judge(results, expected).isGood
  t.ok(isGood(one('A', 'passed'), one('B', 'failed')))
  t.ok(isGood(one('A', 'passed'), one('B', 'skipped')))
  t.absent(isGood(one('A', 'failed')), 'a failure that is not expected')
  t.absent(isGood(one('B', 'failed', 'direct')), 'a failure at another place')
  t.absent(isGood(one('B', 'passed')), 'an expected failure that passes')
  t.absent(isGood(), 'nothing ran')
  const { passed, failed, skipped, lines } = judge(
    [one('A', 'passed'), one('B', 'failed'), one('C', 'skipped')],
    expected
  )
  t.alike([passed, failed, skipped], [1, 1, 1])
  t.ok(lines.some((line) => line.includes('expected  B (rest, hop): because')))
})

test('every expected failure names a case or a check, and docs/A2A-COMPLIANCE.md lists it', (t) => {
  const text = fs.readFileSync(path.join(ROOT, 'docs', 'A2A-COMPLIANCE.md'), 'utf8')
  const ids = new Set(readCases().map(({ id }: Case) => id))
  for (const { id, way = '' } of readExpected()) {
    t.ok(ids.has(id) || way !== '', id)
    t.ok(text.includes(ids.has(id) ? id : `${way.replace(/ (jsonrpc|rest)$/, '')}: ${id}`), `${id} is in the document`)
  }
})
