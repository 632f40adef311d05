import test from 'brittle'
import { reachFacts } from '../../../src/cli/terminal/banner.js'
import type { NatKind, ReachInfo } from '../../../src/ports/network/reach.js'
import { fakeHome } from '../command-line.js'

const SINCE = '2030-01-02T03:04:05Z'

function reach(kind: NatKind, state: NonNullable<ReachInfo['dht']>['state'] = 'answering'): ReachInfo {
  return { dht: { state, since: SINCE }, nat: { kind, since: SINCE }, address: '198.51.100.1' }
}

test('start and status say whether the DHT answers, the NAT, the address that others see, and since when', async (t) => {
  const { run } = await fakeHome(t, { status: { reach: reach('random') } })
  for (const command of ['start', 'status']) {
    const { stdout } = await run([command])
    t.ok(stdout.includes(`  dht       answers since ${SINCE}\n`), stdout)
    t.ok(stdout.includes('  nat       another port for each peer (random); others see 198.51.100.1\n'), stdout)
  }
  const { stdout } = await run(['status', '--json'])
  t.alike((JSON.parse(stdout) as { reach: ReachInfo }).reach, reach('random'))
})

test('a silent DHT shows no NAT, and a network without one shows nothing', (t) => {
  const [[, silent] = []] = reachFacts({ reach: reach('unknown', 'silent') })
  t.alike(silent, { text: `no node of it answers since ${SINCE}`, style: 'yellow' })
  t.is(reachFacts({ reach: reach('unknown', 'unknown') }).length, 1)
  t.alike(reachFacts({ reach: { ...reach('unknown'), dht: null } }), [])
  t.alike([...reachFacts({ reach: null }), ...reachFacts({})], [])
})

test('a NAT that changed after the first answer says since when', (t) => {
  const later = { ...reach('consistent'), nat: { kind: 'consistent', since: '2030-01-02T04:00:00Z' } as const }
  const [, [, nat] = []] = reachFacts({ reach: later })
  t.is(nat, 'one port for all peers, since 2030-01-02T04:00:00Z; others see 198.51.100.1')
})
