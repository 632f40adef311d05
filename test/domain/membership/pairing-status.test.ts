import test, { type Assert } from 'brittle'
import { DENY_STATUS, type DenyCode, denyCode, denyStatus } from '../../../src/domain/membership/pairing-status.js'

test('every reason to deny has a number of its own, and back', (t: Assert) => {
  t.alike(DENY_STATUS, { INVITE_REVOKED: 1, INVITE_USED: 2, INVITE_EXPIRED: 3, REVOKED: 4, INVITE_INVALID: 5 })
  for (const code of Object.keys(DENY_STATUS) as DenyCode[]) t.is(denyCode(denyStatus(code)), code)
  for (const status of [0, 6, -1, 1.5, Number.NaN]) t.is(denyCode(status), null)
})
