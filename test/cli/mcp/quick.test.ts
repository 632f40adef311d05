import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { callerWords } from '../../../src/cli/clients/caller.js'
import { callerIn, quickOptions } from '../../../src/cli/mcp/quick.js'
import { buildProgram } from '../../../src/cli/program.js'
import { holds } from '../../support/holds.js'

/** The options that the parser of the command line finds in words; null for words that it refuses. */
async function parsed(words: readonly string[]): Promise<Record<string, unknown> | null> {
  let found: Record<string, unknown> | null = null
  const program = buildProgram(
    (_spec, _args, options) => {
      found = options
      return Promise.resolve()
    },
    { out: { write: () => true } }
  )
  try {
    await program.parseAsync(['mcp', 'serve', ...words], { from: 'user' })
  } catch {}
  return found
}

test('options that are read without the parser are those that it reads', async (t: Assert) => {
  const arbWord = fc.constantFrom(
    ...['--as', '--tier', '--sandbox', '--agents', '--home', '--no-start', '--embed', '--json', '--network'],
    ...['claude', 'L2', 'lab', 'text,file*', '/a b', '', ' ', '--', '-x', '--as=x', '--start']
  )
  let quick = 0
  const property = fc.asyncProperty(fc.array(arbWord, { maxLength: 8 }), async (words) => {
    const options = quickOptions(words)
    if (options === null) return true
    quick++
    const whole = await parsed(words)
    return whole !== null && Object.entries(options).every(([key, value]) => whole[key] === value)
  })
  await holds(t, property, 2000)
  t.ok(quick > 50, `${quick} command lines without the parser`)
})

test('an entry of connect needs no parser, and keeps its rights', (t: Assert) => {
  for (const agents of [null, ['text', 'file*']])
    for (const sandboxId of [null, 'lab']) {
      const terms = { name: 'claude', tier: 2, sandboxId, agents } as const
      const options = quickOptions([...callerWords(terms), '--home', '/home of mine', '--no-start'])
      t.alike(options === null ? null : callerIn(options), terms)
      t.alike([options?.['home'], options?.['start']], ['/home of mine', false])
    }
  t.is(callerIn(quickOptions([]) ?? {}), null)
  for (const words of [['--help'], ['--as'], ['--as', 'a', '--as', 'b'], ['x'], ['--timeout', '5s'], ['--tier', '']])
    t.is(quickOptions(words), null, words.join(' '))
})
