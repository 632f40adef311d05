import test from 'brittle'
import { CHECK_OUTPUT_MAX, runCheck } from '../../src/cli/check-command.js'

const parts = { input: '{"a":1}\n', env: {}, timeoutMs: 60_000 }

test('a check gets the results on its input, and its exit code and the end of its output are kept', async (t) => {
  t.alike(await runCheck('read line; echo "$line $ROUND"; echo bad >&2; exit 3', { ...parts, env: { ROUND: '2' } }), {
    code: 3,
    output: '{"a":1} 2\nbad\n',
    isInterrupted: false
  })
  t.is(
    (await runCheck('exit 0', { ...parts, input: 'x'.repeat(1_000_000) })).code,
    0,
    'one that does not read has not failed'
  )
  const long = await runCheck(`head -c ${CHECK_OUTPUT_MAX * 4} /dev/zero | tr '\\0' x; echo end`, parts)
  t.is(long.output.length, CHECK_OUTPUT_MAX)
  t.ok(long.output.endsWith('xend\n'))
})

test('a check that runs too long is ended with all that it began', async (t) => {
  // It ends when nobody holds its output any more.
  const { code, output } = await runCheck('sleep 600 & sleep 600', { ...parts, timeoutMs: 300 })
  t.is(code, null)
  t.ok(output.includes('it ran too long'), output)
})
