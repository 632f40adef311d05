import fs from 'node:fs/promises'
import path from 'node:path'
import { spawn } from 'node:child_process'
import test, { type Assert } from 'brittle'
import type { SwarmInfo, SwarmPreview, SwarmResults } from '../../src/ports/swarm-api.js'
import { ROOT, type TestMesh, type TestNode, testMesh, untilAgent, untilTrue } from '../support/nodes.js'

interface RoundLine {
  readonly type: string
  readonly round: number
  readonly swarm: string
  readonly check: { readonly code: number | null; readonly output: string }
}

function agentFile(name: string, capability: string, expression: string): string {
  const program = `let s='';process.stdin.on('data',d=>s+=d).on('end',()=>{const t=JSON.parse(s);console.log(JSON.stringify(${expression}))})`
  return `---
name: ${name}
description: Does it.
a2a:
  version: 0.1.0
  capabilities:
    - { id: ${capability}, description: it, input: { type: object }, idempotent: true }
  runtime: { type: command, command: [node, -e, ${JSON.stringify(program)}] }
---
`
}

async function withAgents(
  t: Assert,
  agents: Readonly<Record<string, readonly [string, string]>>
): Promise<{ mesh: TestMesh; a: TestNode }> {
  const mesh = await testMesh(t, { commandsHere: true })
  const [a] = await mesh.meshOf('a')
  for (const [name, [capability, expression]] of Object.entries(agents))
    await fs.writeFile(path.join(a.home, 'agents', `${name}.md`), agentFile(name, capability, expression))
  await Promise.all(Object.keys(agents).map((name) => untilAgent(a, `${name}@a`)))
  return { mesh, a }
}

const linesOf = (stdout: string): Record<string, unknown>[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('a loop continues until its check passes; the output of the check goes into the next round, and the results of every round are kept', async (t) => {
  const { a } = await withAgents(t, { echo: ['job.echo', '({said:t.description})'] })
  const check = 'cat > /dev/null; echo "round $A2A_NODE_ROUND is not enough"; test "$A2A_NODE_ROUND" -ge 3'
  const args = ['swarm', 'run', 'try', '--capability', 'job.echo', '--until', check]
  const { code, stdout, stderr } = await a.cli([...args, '--max-rounds', '5', '--json'])
  t.is(code, 0, stderr)
  const lines = linesOf(stdout)
  const rounds = lines.filter(({ type }) => type === 'round') as unknown as RoundLine[]
  t.alike(
    rounds.map(({ round, check: { code: exit, output } }) => [round, exit, output]),
    [
      [1, 1, 'round 1 is not enough\n'],
      [2, 1, 'round 2 is not enough\n'],
      [3, 0, 'round 3 is not enough\n']
    ]
  )
  t.alike([lines.at(-1)?.['schema'], lines.at(-1)?.['passed']], ['a2a-node/swarm-loop@1', true])
  const said = async (swarm = ''): Promise<string> =>
    (await a.json<SwarmResults>(['swarm', 'results', swarm])).results
      .map(({ result }) => (result as { said: string }).said)
      .join()
  t.is(await said(rounds[0]?.swarm), 'try')
  t.ok((await said(rounds[2]?.swarm)).includes('round 2 is not enough'))
  const { swarms } = await a.json<{ swarms: SwarmInfo[] }>(['swarm', 'ls'])
  t.alike(
    new Set(swarms.map(({ round }) => `${round?.number} ${round?.first}`)),
    new Set([1, 2, 3].map((number) => `${number} ${rounds[0]?.swarm}`))
  )

  const short = await a.cli([...args, '--max-rounds', '2'])
  t.is(short.code, 1)
  t.ok(short.stdout.includes('the check did not pass in 2 rounds'), short.stdout)
})

test('Ctrl-C ends a loop in its check, with all that the check began', async (t) => {
  const { mesh, a } = await withAgents(t, { echo: ['job.echo', '1'] })
  const file = path.join(await mesh.dir(), 'begun')
  const check = `cat > /dev/null; echo $$ > ${file}.new; mv ${file}.new ${file}; sleep 600`
  const child = spawn(
    process.execPath,
    [
      path.join(ROOT, 'bin', 'a2a-node.js'),
      '--home',
      a.home,
      'swarm',
      'run',
      'x',
      '--capability',
      'job.echo',
      '--until',
      check
    ],
    {
      stdio: 'ignore'
    }
  )
  t.teardown(() => child.kill('SIGKILL'))
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await untilTrue(
    () =>
      fs.readFile(file).then(
        () => true,
        () => false
      ),
    'the check runs'
  )
  child.kill('SIGINT')
  t.is(await exited, 130)
})

test('a planner makes a plan of a goal: it is shown, checked before it runs, and begun on confirmation', async (t) => {
  const plan = `({plan:{tasks:[{id:"one",capability:"job.echo",input:{goal:"{goal}"}},{id:"two",capability:t.input.goal==="bad"?"no.such":"job.echo",needs:["one"]}]}})`
  const { a } = await withAgents(t, { echo: ['job.echo', '({got:t.input})'], planner: ['swarm.plan', plan] })
  const unasked = await a.cli(['swarm', 'run', 'do it'])
  t.is(unasked.code, 2)
  t.ok(unasked.stderr.includes('--yes'), unasked.stderr)
  const dry = linesOf((await a.cli(['swarm', 'run', 'do it', '--dry-run', '--json'])).stdout).at(
    -1
  ) as unknown as SwarmPreview
  t.alike(
    dry.stages.map(({ id, needs }) => [id, needs]),
    [
      ['one', []],
      ['two', ['one']]
    ]
  )
  const bad = await a.cli(['swarm', 'run', 'bad', '--yes'])
  t.is(bad.code, 4, bad.stderr)
  t.alike((await a.json<{ swarms: unknown[] }>(['swarm', 'ls'])).swarms, [], 'nothing of it began')
  const ran = await a.cli(['swarm', 'run', 'do it', '--yes', '--json'])
  t.is(ran.code, 0, ran.stderr)
  t.alike(linesOf(ran.stdout).at(-1)?.['result'], { got: { got: { goal: 'do it' } } })
  const shown = await a.cli(['swarm', 'run', 'do it', '--yes'])
  t.ok(shown.stdout.startsWith('plan of 2 sub-tasks\n  {"id":"one","capability":"job.echo"'), shown.stdout)
})
