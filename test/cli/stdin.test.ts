import test, { type Assert } from 'brittle'
import { fakeHome } from './command-line.js'
import { readingOf } from './samples.js'

test('empty standard input is refused by every command that takes -, and reaches no node', async (t: Assert) => {
  const { run, fake } = await fakeHome(t, { calls: { 'documents.read': () => readingOf('text', 'kept') } })
  const commands = [
    ['doc', 'set', 'notes', '-'],
    ['mesh', 'set', '-'],
    ['send', 'text', '-'],
    ['call', 'text', 'text.stats', '-'],
    ['tools', 'call', 'demo', 'add', '-'],
    ['agents', 'run', 'agent.md', '-'],
    ['swarm', 'run', 'goal', '--capability', 'a.b', '--items', '-'],
    ['start', '--join', '-']
  ]
  for (const command of commands) {
    const ran = await run(command, { stdin: '' })
    t.is(ran.code, 2, command.join(' '))
    t.ok(ran.stderr.includes('standard input is empty'), `${command.join(' ')}: ${ran.stderr}`)
  }
  t.alike(
    fake.seen.filter(({ name }) => name !== 'node.info'),
    []
  )
})

test('--allow-empty empties a document on purpose, and the refusal names it', async (t: Assert) => {
  const kept = readingOf('text', 'kept')
  const calls = { 'documents.read': () => kept, 'documents.edit': () => ({ ...kept, changed: true }) }
  const { run, fake } = await fakeHome(t, { calls })
  const refused = await run(['doc', 'set', 'notes', '-', '--type', 'text'], { stdin: '' })
  t.ok(/try: a2a-node .*doc set notes - --type text --allow-empty/.test(refused.stderr), refused.stderr)
  t.absent(fake.seen.some(({ name }) => name === 'documents.edit'))
  t.is((await run(['doc', 'set', 'notes', '-', '--type', 'text', '--allow-empty'], { stdin: '' })).code, 0)
  t.is(fake.seen.filter(({ name }) => name === 'documents.edit').length, 1)
})

test('a text without content empties a document with content by --allow-empty only, from an argument, a pipe or a file', async (t: Assert) => {
  let stored = readingOf('text', 'kept')
  const calls = { 'documents.read': () => stored, 'documents.edit': () => ({ ...stored, changed: true }) }
  const { run, fake } = await fakeHome(t, { calls })
  const edits = () => fake.seen.filter(({ name }) => name === 'documents.edit').length
  const set = (text: string, stdin = '', more: readonly string[] = []) =>
    run(['doc', 'set', 'notes', text, '--type', 'text', ...more], { stdin })
  // `echo "$(false)"` and a file of blank lines give these.
  for (const [text, stdin] of [
    ['', ''],
    [' \t', ''],
    ['-', '\n'],
    ['-', ' \r\n\n']
  ] as const) {
    const refused = await set(text, stdin)
    t.is(refused.code, 2, JSON.stringify([text, stdin]))
    t.ok(refused.stderr.includes('the text is empty, and notes is not: --allow-empty empties it'), refused.stderr)
    t.ok(/try: a2a-node .*doc set notes .*--allow-empty/.test(refused.stderr), refused.stderr)
    t.is(edits(), 0)
    t.is((await set(text, stdin, ['--allow-empty'])).code, 0)
    t.is(edits(), 1)
    fake.seen.length = 0
  }
  stored = readingOf('text', '\n')
  t.is((await set('')).code, 0, 'a document without content loses nothing')
  t.is(edits(), 1)
})
