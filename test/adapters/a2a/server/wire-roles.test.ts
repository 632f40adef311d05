import test, { type Assert } from 'brittle'
import { A2AFault } from '../../../../src/adapters/a2a/server/fault.js'
import type { Wire } from '../../../../src/adapters/a2a/server/wire.js'
import { WIRE_V03 } from '../../../../src/adapters/a2a/server/wire-v03.js'
import { WIRE_V1 } from '../../../../src/adapters/a2a/server/wire-v1.js'

test('a role that is none, or not that of a user, is refused in the words of the version', (t: Assert) => {
  const cases: readonly (readonly [Wire, unknown, string])[] = [
    [WIRE_V1, 'bogus', 'message.role: must be ROLE_USER or ROLE_AGENT'],
    [WIRE_V1, undefined, 'message.role: must be ROLE_USER or ROLE_AGENT'],
    [WIRE_V1, 'ROLE_AGENT', 'message.role: must be ROLE_USER: clients speak for users'],
    [WIRE_V03, 'bogus', 'message.role: must be user or agent'],
    [WIRE_V03, 'agent', 'message.role: must be user: clients speak for users']
  ]
  for (const [wire, role, expected] of cases) {
    const text = wire === WIRE_V1 ? { text: 'x' } : { kind: 'text', text: 'x' }
    const fault = (() => {
      try {
        return wire.readSend({ message: { messageId: 'z', role, parts: [text] } })
      } catch (error) {
        return error
      }
    })()
    t.ok(fault instanceof A2AFault)
    t.is((fault as A2AFault).message, expected)
    t.ok(JSON.stringify((fault as A2AFault).toRest()).includes('"field":"message.role"'))
  }
})
