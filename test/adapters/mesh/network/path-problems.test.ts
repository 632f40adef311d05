import test from 'brittle'
import { pathProblems } from '../../../../src/adapters/mesh/network/path-problems.js'
import type { NetworkProblem } from '../../../../src/adapters/mesh/network/reachability.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import type { LinkPath } from '../../../../src/ports/mesh.js'
import type { NatKind } from '../../../../src/ports/network/reach.js'

const BOB = 'bob' as NodeId
const MESSAGE = 'nothing answers'

function found(
  code: NetworkProblem['code'] | null,
  paths: readonly LinkPath[],
  { kind = 'consistent', hasWebSockets = false }: { kind?: NatKind; hasWebSockets?: boolean } = {}
) {
  const problems = code === null ? [] : [{ code, message: MESSAGE, next: 'ping 1.2.3.4' }]
  const dht = { state: 'silent', since: '2030-01-02T03:04:05Z' } as const
  const info = { dht, nat: { kind, since: '' }, address: null }
  const state = {
    problems: () => problems,
    info: () => info,
    isAnswering: () => true,
    look: async () => {},
    onChange: () => {}
  }
  return pathProblems(
    { state, hasWebSockets },
    paths.map((path) => ({ peer: BOB, path })),
    { members: new Map() }
  )
}

function codes(...given: Parameters<typeof found>): string[] {
  return found(...given).map(({ code }) => code)
}

test('UDP is named as blocked only when a WebSocket is open and no node of the public DHT answers', (t) => {
  t.alike(codes('NETWORK_OFFLINE', []), ['NETWORK_OFFLINE'])
  t.alike(codes('NETWORK_OFFLINE', ['local']), ['NETWORK_OFFLINE'])
  t.alike(codes('NETWORK_OFFLINE', ['websocket', 'direct']), ['NETWORK_OFFLINE'], 'a link by UDP is open')
  t.alike(codes('BOOTSTRAP_OFFLINE', ['websocket']), ['BOOTSTRAP_OFFLINE'], 'the only bootstrap node may be off')
  t.alike(codes(null, ['websocket']), [])
  const [problem] = found('NETWORK_OFFLINE', ['websocket'])
  t.is(problem?.code, 'UDP_BLOCKED')
  const words = 'no node of the public DHT answers since 2030-01-02T03:04:05Z, while a WebSocket to bob is open'
  t.ok(problem?.message.startsWith(words), problem?.message)
})

test('a random NAT is a problem while this node has no WebSocket', (t) => {
  t.alike(codes(null, [], { kind: 'random' }), ['NAT_RANDOM'])
  t.alike(codes('BOOTSTRAP_OFFLINE', [], { kind: 'random' }), ['BOOTSTRAP_OFFLINE', 'NAT_RANDOM'])
  t.alike(codes(null, [], { kind: 'random', hasWebSockets: true }), [])
})
