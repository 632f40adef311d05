import fs from 'node:fs'
import test from 'brittle'
import { createSchemaCompiler } from '../src/adapters/agents/schemas/compile-schema.js'
import { parseAgentFile } from '../src/adapters/agents/files/agent-file.js'
import { readPolicy } from '../src/adapters/storage/policy/policy-text.js'
import { buildProgram } from '../src/cli/program.js'
import { messageOf } from '../src/kit/errors.js'
import { commandsOf, fencesOf, withoutFences } from './support/markdown.js'

const README = fs.readFileSync('README.md', 'utf8')
/** Pages for newcomers: a command in a sentence is whole there too. */
const WHOLE = new Set(['README.md', 'docs/USING.md'])
const PACKAGE = JSON.parse(fs.readFileSync('package.json', 'utf8')) as {
  version: string
  scripts: Record<string, string>
}
/** Commands of npm that are no scripts of the package. */
const NPM = new Set(['ci', 'install', 'pack', 'test'])

function shellBlocks(): string[] {
  return fencesOf(README).flatMap(({ language, text }) => (language === 'sh' ? [text] : []))
}

/** Why the command line would refuse these words; null when it would run them. */
async function refusalOf(words: readonly string[]): Promise<string | null> {
  let isRun = false
  const program = buildProgram(async () => {
    isRun = true
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return isRun ? null : 'it runs nothing'
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Every `a2a-node ...` of the shell blocks, and between backticks of the pages for newcomers. Placeholders count as
 * words.
 */
function commandLines(name: string): string[][] {
  const markdown = fs.readFileSync(name, 'utf8')
  const shell = fencesOf(markdown).filter((one) => one.language === 'sh')
  // Elsewhere a command in a sentence need not be whole.
  const sentences = WHOLE.has(name) ? withoutFences(markdown) : ''
  const inline = [...sentences.matchAll(/`(a2a-node [^`]+)`/g)].map(([, text = '']) => text)
  const commands = [...shell.map((one) => one.text), ...inline].flatMap(commandsOf)
  return commands.flatMap(([program, ...words]) => (program === 'a2a-node' && !words.includes('--help') ? [words] : []))
}

test('the first block of the README is the one command that shows the main job', (t) => {
  const [first = ''] = shellBlocks()
  t.ok(first.trim().split('\n').length <= 5, 'at most five lines')
  t.alike(commandsOf(first), [
    ['npm', 'ci'],
    ['npm', 'run', 'demo']
  ])
})

test('the second block runs the tests', (t) => {
  t.alike(commandsOf(shellBlocks()[1] ?? ''), [
    ['npm', 'ci'],
    ['npm', 'test']
  ])
})

test('every script and file that the README has people run is there', (t) => {
  const words = [...shellBlocks(), ...[...README.matchAll(/`(npm [^`]+)`/g)].map(([, text = '']) => text)].flatMap(
    commandsOf
  )
  const commands = words.filter(([program]) => program === 'npm')
  t.ok(commands.length >= 6)
  for (const [, verb = '', name = ''] of commands) {
    if (verb === 'run') t.ok(PACKAGE.scripts[name] !== undefined, `npm run ${name}`)
    else t.ok(NPM.has(verb), `npm ${verb}`)
  }
  t.ok(README.includes(`a2a-node-${PACKAGE.version}.tgz`), 'the packed file has the name of this version')
})

test('the command line takes every command that README and docs show', async (t) => {
  const names = ['README.md', ...fs.readdirSync('docs').map((name) => `docs/${name}`)].filter((name) =>
    name.endsWith('.md')
  )
  const commands = names.flatMap(commandLines)
  t.ok(commands.length > 15, 'some are shown')
  for (const words of commands) t.is(await refusalOf(words), null, `a2a-node ${words.join(' ')}`)
  for (const words of [['peers', '--nonsense'], ['ping'], ['start', '--network', 'moon'], ['swarm', 'walk']])
    t.ok((await refusalOf(words)) !== null, `a2a-node ${words.join(' ')} is refused, so the check can fail`)
})

test('the agent file that the README shows is a good one', (t) => {
  const text = fencesOf(README).find((one) => one.language === 'markdown')?.text ?? ''
  const file = parseAgentFile(text, { file: '/agents/tester.md', compileSchema: createSchemaCompiler() })
  t.alike(file.ok ? file.ignored : file.faults, [])
})

test('the policy that USING.md shows is a good one', (t) => {
  const reading = readPolicy(
    fencesOf(fs.readFileSync('docs/USING.md', 'utf8')).find((one) => one.language === 'yaml')?.text ?? ''
  )
  t.alike(reading.ok ? reading.rules.map((one) => one.decision) : reading.faults, ['allow', 'deny', 'ask'])
})

test('shell words are taken apart as a shell would', (t) => {
  t.alike(commandsOf(`a 'b c' "d" # e\nf --g='h i' && j \\\n  k; l & m`), [
    ['a', 'b c', 'd'],
    ['f', '--g=h i'],
    ['j', 'k'],
    ['l'],
    ['m']
  ])
})
