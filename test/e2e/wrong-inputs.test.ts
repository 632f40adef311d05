import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { buildProgram } from '../../src/cli/program.js'
import { messageOf } from '../../src/kit/errors.js'
import { commandsOf } from '../support/markdown.js'
import { type CommandResult, type LocalMesh, localMesh } from '../support/nodes.js'
import { OF_A_NODE, WITHOUT_NODE, type WrongInput } from '../support/wrong-inputs.js'

type Run = (words: readonly string[]) => Promise<CommandResult>

interface Refusal {
  readonly code: string
  readonly message: string
  readonly next: readonly string[]
}

/** Programs of the system that a next step may name. */
const PROGRAMS = new Set(['ls', '$EDITOR'])
/** Commands that end or replace the node of the test: they are only parsed. A `start` without a node is run. */
const ENDING = new Set(['start', 'stop', 'restore', 'leave'])

function refusalOf({ stdout, stderr }: CommandResult): Refusal | null {
  const line = [...stderr.split('\n'), ...stdout.split('\n')].find((one) => one.includes('"error":{'))
  return line === undefined ? null : (JSON.parse(line) as { error: Refusal }).error
}

/** Why the command line would not take these words; null when it would. */
async function parseFault(words: readonly string[]): Promise<string | null> {
  try {
    await buildProgram(async () => {}).parseAsync(words, { from: 'user' })
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Why a next step does not help; null when it does. */
async function stepFault(step: string, run: Run): Promise<string | null> {
  const [[program = '', ...words] = []] = commandsOf(step.replaceAll(/<[^>]+>/g, 'x'))
  if (program !== 'a2a-node') return PROGRAMS.has(program) ? null : `${program} is no command of this node`
  const bare = words[0] === '--home' ? words.slice(2) : words
  if (bare.includes('--help')) return (await run(bare)).code === 0 ? null : 'it prints no help'
  if (step.includes('<') || step.includes('on a machine of') || ENDING.has(bare[0] ?? ''))
    return await parseFault(words)
  const { code, stderr } = await run(bare)
  // A check reports its faults again, with their lines.
  return code === 0 || (bare[1] === 'check' && code === 78) ? null : `exit ${code}: ${stderr}`
}

/** Only commands that read standard input get one: these run in processes of their own. */
function inputOf(words: readonly string[]): '' | undefined {
  return words.includes('-') && words[0] !== 'call' ? '' : undefined
}

async function check(t: Assert, [exit, code, line]: WrongInput, run: Run): Promise<readonly string[]> {
  const [words = []] = commandsOf(line)
  const result = await run([...words, '--json'])
  const refusal = refusalOf(result)
  t.alike([result.code, refusal?.code ?? ''], [exit, code], `${line}: ${result.stdout}${result.stderr}`.slice(0, 500))
  if (refusal === null) return []
  t.ok(refusal.message.length > 0 && refusal.next.length > 0, `${line}: a reason and a next step`)
  for (const step of refusal.next) t.is(await stepFault(step, run), null, `${line}: ${step}`)
  return refusal.next
}

/** Starts a new home by each step, which has `--home`, and stops it. */
async function startsBy(t: Assert, steps: ReadonlySet<string>, mesh: LocalMesh): Promise<void> {
  for (const step of steps) {
    const [[, , , ...words] = []] = commandsOf(step)
    const run: Run = async (more) => await mesh.run(['--home', path.join(await home, 'new'), ...more])
    const home = mesh.dir()
    const { code, stderr } = await run([...words, '--detach'])
    t.is(code, 0, `${step}: ${stderr}`)
    t.is((await run(['stop'])).code, 0, step)
  }
}

test('each of 170 wrong inputs has its exit code, its error code, and next steps that run', {
  timeout: 900_000
}, async (t: Assert) => {
  t.ok(OF_A_NODE.length + WITHOUT_NODE.length >= 170)
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('a', 'b')
  if (a === undefined) throw new Error('no node')
  await a.cli(['doc', 'set', 'notes', 'milk'])
  const former = process.cwd()
  process.chdir(await mesh.dir())
  t.teardown(() => process.chdir(former))
  for (const kind of ['md', 'yaml', 'json', 'backup']) fs.writeFileSync(`broken.${kind}`, '---\n{')
  for (const [name, text] of Object.entries({
    'lines.txt': 'one\ntwo\n',
    'plan.yaml': 'tasks: []\n',
    'taken.backup': 'x'
  }))
    fs.writeFileSync(name, text)
  const capability = '{ id: good.run, description: Good, input: { type: object }, output: {} }'
  fs.writeFileSync(
    'good.md',
    `---\nname: good\ndescription: Good.\na2a:\n  capabilities:\n    - ${capability}\n  runtime: { type: command, command: [node, -p, "1"] }\n---\n`
  )
  for (const one of OF_A_NODE) await check(t, one, (words) => a.cli(words, inputOf(words)))
  const home = path.join(process.cwd(), 'none')
  const starts = new Set<string>()
  for (const one of WITHOUT_NODE) {
    const next = await check(t, one, (words) =>
      mesh.run(['--home', home, ...words], { ...(inputOf(words) === undefined ? {} : { input: '' }) })
    )
    for (const step of next) if (/^a2a-node --home \S+ start\b(?!.*(?:--help|<))/.test(step)) starts.add(step)
  }
  t.ok(starts.size >= 3)
  await startsBy(t, starts, mesh)
})
