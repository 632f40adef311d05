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
  t.is((await run(['doc', 'set', 'notes', '', '--type', 'text'])).code, 0, 'an empty argument is typed on purpose')
  t.is(fake.seen.filter(({ name }) => name === 'documents.edit').length, 2)
})
