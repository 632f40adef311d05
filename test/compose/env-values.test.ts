import test, { type Assert } from 'brittle'
import { resolvedValue } from '../../src/compose/env-values.js'
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
      t.is((error as NodeError).message, 'mcp.servers.a: KEY: the variable NONE is not set in the environment of this node')
    }
  }
})
