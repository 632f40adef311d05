import test, { type Assert } from 'brittle'
import { DENY_STATUS, type DenyCode, denyCode, denyStatus } from '../../../src/domain/membership/pairing-status.js'

test('every reason to deny has a number of its own, and back', (t: Assert) => {
  const numbers = {
    INVITE_REVOKED: 1,
    INVITE_USED: 2,
    INVITE_EXPIRED: 3,
    REVOKED: 4,
    INVITE_INVALID: 5,
    AMBIGUOUS_NAME: 6,
    INVALID_INPUT: 7
  }
  t.alike(DENY_STATUS, numbers)
  for (const code of Object.keys(DENY_STATUS) as DenyCode[]) t.is(denyCode(denyStatus(code)), code)
  for (const status of [0, 8, -1, 1.5, Number.NaN]) t.is(denyCode(status), null)
})
