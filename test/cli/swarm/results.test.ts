import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { joinPairs } from '../../../src/cli/program.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { SwarmResults } from '../../../src/ports/swarm-api.js'
import { fakeHome, type FakeHome } from '../command-line.js'
import { swarm, swarmEvents } from '../samples.js'
import { tempDir } from '../../support/tmp.js'

const RUN = ['swarm', 'run', 'count words', '--capability', 'text.stats'] as const

type Result = SwarmResults['results'][number]

function result(item: string, value: unknown): Result {
  return { item, agent: 'text@laptop', attempt: 1, status: 'completed', result: value, error: null, durationMs: 5 }
}

/** A node with a swarm of these results. */
async function ended(t: Assert, results: readonly Result[]): Promise<FakeHome> {
  return await fakeHome(t, {
    swarmEvents: swarmEvents(),
    swarms: [swarm()],
    calls: { 'swarm.results': ({ id }) => ({ id, status: 'completed', results }) }
  })
}

test('swarm run ends with a table of its results, at most 50, and the command for all', async (t: Assert) => {
  const { run } = await ended(t, [result('a.txt', { words: 1 }), result('b.txt', 'text')])
  const { code, stdout } = await run(RUN)
  t.is(code, 0)
  t.ok(/\nITEM +AGENT +STATUS +TIME +RESULT\n/.test(stdout), stdout)
  t.ok(/\na\.txt +text@laptop +completed +5 ms +\{"words":1\}\nb\.txt .* text\nresults: /.test(stdout), stdout)
  const many = await ended(
    t,
    Array.from({ length: 60 }, (_, i) => result(`item ${i}`, i))
  )
  const long = await many.run(RUN)
  t.is(long.stdout.match(/^item /gm)?.length, 50)
  t.ok(long.stdout.endsWith('\nand 10 more results\nresults: a2a-node swarm results swarm_fake\n'), long.stdout)
})

test('with --results json stdout is the results alone, and the summary is on stderr', async (t: Assert) => {
  const { run } = await ended(t, [result('a.txt', { words: 1 })])
  const { code, stdout, stderr } = await run([...RUN, '--results', 'json'])
  t.is(code, 0)
  const printed = JSON.parse(stdout) as { schema: string; results: unknown[] }
  t.alike([printed.schema, printed.results.length], ['a2a-node/swarm-results@1', 1])
  t.ok(stderr.includes('2 of 2 items done') && stderr.includes('a2a-node swarm results swarm_fake'), stderr)
})

test('the last line of --json has the results up to 1 Mi characters, and the number of the others', async (t: Assert) => {
  const last = (stdout: string): { type: string; results: Result[]; moreResults?: number } =>
    JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as never
  const few = await ended(t, [result('a', 1), result('b', 2)])
  const all = last((await few.run([...RUN, '--json'])).stdout)
  t.alike([all.type, all.results.map(({ item }) => item), 'moreResults' in all], ['done', ['a', 'b'], false])
  t.is(last((await few.run(['swarm', 'watch', 'swarm_fake', '--json'])).stdout).results.length, 2)
  const large = await ended(
    t,
    Array.from({ length: 8 }, (_, i) => result(`${i}`, 'x'.repeat(300_000)))
  )
  const { stdout } = await large.run([...RUN, '--json'])
  const bounded = last(stdout)
  t.alike([bounded.results.length, bounded.moreResults], [3, 5])
})

test('--results json and files fail where the node cannot give the results, with the command for them, and no directory stays', async (t: Assert) => {
  const directory = path.join(await tempDir(t), 'out')
  for (const [code, exit] of [
    ['NODE_NOT_RUNNING', 3],
    ['TIMEOUT', 6]
  ] as const) {
    const { run } = await fakeHome(t, {
      swarmEvents: swarmEvents(),
      calls: {
        'swarm.results': () => {
          throw new NodeError(code, 'no answer')
        }
      }
    })
    for (const form of [['json'], ['files', directory], ['files', directory, '--json']]) {
      const { code: exited, stdout, stderr } = await run([...RUN, '--results', ...form])
      t.is(exited, exit, form.join(' '))
      if (!form.includes('--json')) t.ok(`${stdout}${stderr}`.includes('2 of 2 items done'), 'the summary stays')
      t.ok(stderr.includes('swarm swarm_fake has ended, and its results cannot be read: no answer'), stderr)
      t.ok(stderr.includes('a2a-node swarm results swarm_fake'), stderr)
    }
    t.is((await run(RUN)).code, 0, 'the table is a convenience')
  }
  t.absent(existsSync(directory))
})

test('the last line of --json lacks results where the node cannot give them any more', async (t: Assert) => {
  const { run } = await fakeHome(t, {
    swarmEvents: swarmEvents(),
    calls: {
      'swarm.results': () => {
        throw new Error('gone')
      }
    }
  })
  const { code, stdout } = await run([...RUN, '--json'])
  t.is(code, 0)
  t.absent((stdout.trim().split('\n').at(-1) ?? '').includes('"results"'))
})

test('--results files writes a file for each result, also with --json, and refuses a directory with content before it begins', async (t: Assert) => {
  const { run, fake } = await ended(t, [result('a.txt', { words: 1 })])
  const directory = path.join(await tempDir(t), 'out')
  const { code, stdout } = await run([...RUN, '--results', 'files', directory])
  t.is(code, 0)
  t.ok(stdout.includes(`results: 1 file in ${directory}; a2a-node swarm results swarm_fake`), stdout)
  t.alike((await readdir(directory)).toSorted(), ['1-a.txt.json', 'results.json'])
  fake.seen.length = 0
  const again = await run([...RUN, '--results', 'files', directory])
  t.is(again.code, 9)
  t.ok(
    again.stderr.includes(
      `  try: a2a-node swarm run 'count words' --capability text.stats --results files=${directory}-2\n`
    )
  )
  t.alike(fake.seen, [], 'nothing began')
  t.is((await run([...RUN, '--results', `files=${directory}-2`, '--json'])).code, 0, 'the next step works')
  t.alike(JSON.parse(await readFile(path.join(`${directory}-2`, '1-a.txt.json'), 'utf8')), { words: 1 })
})

test('a launch that is refused leaves no directory behind', async (t: Assert) => {
  const { run } = await fakeHome(t)
  const root = await tempDir(t)
  t.is((await run([...RUN, '--results', 'files', path.join(root, 'one', 'two')])).code, 4)
  t.alike(await readdir(root), [])
})

test('wrong values of --results and options that exclude it are USAGE before the node is asked', async (t: Assert) => {
  const { run, fake } = await ended(t, [])
  const wrong = [
    ['xml'],
    ['files'],
    ['files='],
    ['file', 'out'],
    ['json', '--json'],
    ['table', '--json'],
    ['json', '--detach'],
    ['table', '--dry-run'],
    ['json', '--until', 'true'],
    ['files=out', '--until', 'true']
  ]
  for (const words of wrong) t.is((await run([...RUN, '--results', ...words])).code, 2, words.join(' '))
  t.is(fake.seen.length, 0)
})

test('two words of an option are joined only for its own values, and never after --', (t: Assert) => {
  t.alike(joinPairs(['swarm', 'run', '--results', 'files', 'out', 'go']), [
    'swarm',
    'run',
    '--results',
    'files=out',
    'go'
  ])
  t.alike(joinPairs(['--results=files', 'out']), ['--results=files=out'])
  for (const words of [
    ['--results', 'json', 'out'],
    ['--results', 'files', '--detach'],
    ['--results', 'files'],
    ['--items', 'files', 'out'],
    ['--', '--results', 'files', 'out']
  ])
    t.alike(joinPairs(words), words)
})
