import test from 'brittle'
import type { DialEnd } from '../../../../src/ports/network/reach.js'
import type { NetworkProblem } from '../../../../src/adapters/mesh/network/reachability.js'
import { explainedJoin } from '../../../../src/adapters/mesh/pairing/explained-join.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { NodeId } from '../../../../src/kit/ids.js'

const ADMIN = `k7f2${'y'.repeat(44)}9d3a` as NodeId
const SILENT = new NodeError('NO_ADMIN_ONLINE', 'no admin answered', { data: { timeoutMs: 7 } })
const OFFLINE: NetworkProblem = { code: 'NETWORK_OFFLINE', message: 'nothing answers', next: 'ping -c 3 1.2.3.4' }

function explained(error: unknown, problems: readonly NetworkProblem[], ...ends: readonly DialEnd[]): NodeError {
  const dials = { failed: () => ends.map((one) => [ADMIN, one] as const) }
  return explainedJoin(error, { state: { problems: () => problems }, dials, hasLan: true }) as NodeError
}

function end(given: Partial<DialEnd>): DialEnd {
  return { fault: 'not-punched', nats: null, isRandomHere: false, ...given }
}

test('a join that no admin answers names the network when that is the cause, and keeps other errors', (t) => {
  const refused = new NodeError('INVITE_USED', 'used')
  const offline = explained(SILENT, [OFFLINE], end({}))
  t.alike([offline.code, offline.data], ['NETWORK_OFFLINE', { timeoutMs: 7 }])
  t.is(offline.message, 'nothing answers. So this node did not join')
  t.alike(offline.next, ['ping -c 3 1.2.3.4', 'a2a-node start --join -'])
  t.is(explained(SILENT, []), SILENT)
  t.is(explained(SILENT, [{ ...OFFLINE, code: 'LAN_OFFLINE' }]), SILENT, 'the DHT answers')
  t.is(explained(refused, [OFFLINE], end({})), refused)
  const missing = explained(SILENT, [{ ...OFFLINE, code: 'BOOTSTRAP_MISSING' }])
  t.ok(missing.message.startsWith('the invite is for a private network without a bootstrap node'), missing.message)
  t.ok(missing.message.includes('outside of its LAN'), missing.message)
})

test('an admin that was found behind another random NAT is named, with a way by WebSocket', (t) => {
  const { code, message, data, next } = explained(SILENT, [], end({ isRandomHere: true }))
  t.alike([code, data], ['NAT_RANDOM', { timeoutMs: 7, admin: ADMIN }])
  t.ok(message.startsWith('the admin k7f2...9d3a was found, but no direct link to it can be made'), message)
  t.absent(message.includes('no admin'), message)
  t.ok(
    next.some((step) => step.includes('--via')),
    next.join()
  )
})

test('an admin that was found and not punched is named, with both NATs where they are known', (t) => {
  const known = end({ isRandomHere: true, nats: { here: 'random', there: 'consistent' } })
  const { code, message } = explained(SILENT, [], end({ fault: 'silent' }), known, end({ fault: 'silent' }))
  t.is(code, 'PUNCH_FAILED')
  t.ok(message.includes('(NAT here: random, there: consistent)'), message)
  t.is(explained(SILENT, [], end({})).code, 'PUNCH_FAILED')
})

test('an admin that was announced and does not answer is named, and the code stays', (t) => {
  const { code, message } = explained(SILENT, [], end({ fault: 'not-found' }))
  t.is(code, 'NO_ADMIN_ONLINE')
  t.ok(message.startsWith('the admin k7f2...9d3a was found, but does not answer'), message)
})
