import test, { type Assert } from 'brittle'
import { resolvedHeader, resolvedValue } from '../../src/config/env-values.js'
import { NodeError } from '../../src/kit/errors.js'

test('a value of the config takes variables as a whole and in part, and the error names key and variable', (t: Assert) => {
  const env = { KEY: 'k' }
  t.is(resolvedValue('env:KEY', env, 'x'), 'k')
  t.is(resolvedValue('Bearer ${KEY}', env, 'x'), 'Bearer k')
  t.is(resolvedValue('see env:KEY', env, 'x'), 'see env:KEY')
  for (const value of ['env:NONE', 'Bearer ${NONE}']) {
    try {
      resolvedValue(value, env, 'mcp.servers.a: KEY')
      t.fail(value)
    } catch (error) {
      t.ok(error instanceof NodeError && error.code === 'CONFIG_INVALID')
      t.is(
        (error as NodeError).message,
        'mcp.servers.a: KEY: the variable NONE is not set in the environment of this node'
      )
    }
  }
})

test('a variable with a character that no header has is refused without its text, and white space at the ends is dropped', (t: Assert) => {
  const env = { TRAILING: 's3cret\r\n', LINES: 's3cret\nx: y', NUL: 's3cret\0', WIDE: 's3cret\u20ac', LATIN: 's\u00e9' }
  t.is(resolvedHeader('Bearer ${TRAILING}', env, 'x'), 'Bearer s3cret')
  t.is(resolvedHeader('env:LATIN', env, 'x'), 's\u00e9')
  for (const name of ['LINES', 'NUL', 'WIDE']) {
    try {
      resolvedHeader(`Bearer \${${name}}`, env, 'llm.providers.a: apiKey')
      t.fail(name)
    } catch (error) {
      t.ok(error instanceof NodeError && error.code === 'CONFIG_INVALID')
      const { message } = error as NodeError
      t.ok(message.startsWith('llm.providers.a: apiKey: ') && !message.includes('s3cret'), message)
    }
  }
})
