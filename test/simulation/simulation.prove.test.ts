import test from 'brittle'
import { traceOf } from './worlds.js'

test('worlds have what they are there for: runs, ends, crashes, cut links, full disks and jumps', async (t) => {
  const texts: string[] = []
  for (let seed = 1; seed <= 60; seed++) texts.push(await traceOf(seed))
  const all = texts.join('\n')
  for (const what of [
    'begins req_',
    'ends req_',
    'is killed',
    'has stopped',
    'is cut',
    'stalls',
    'cannot reach',
    'its disk is full',
    'disk refuses',
    'wall clock',
    'cancels ask',
    'run 2',
    'of the caller is completed',
    'of the caller is failed',
    'of the caller is unknown'
  ])
    t.ok(all.includes(what), what)
})

test('swarms of worlds have what they are there for: every outcome and end, leases that are lost, lost disks and keys', async (t) => {
  const texts: string[] = []
  for (let seed = 3; seed <= 360; seed += 3) texts.push(await traceOf(seed))
  const all = texts.join('\n')
  for (const what of [
    'its disk is lost',
    'begins swarm_',
    'run 2',
    'lease 2 of',
    'ends: no heartbeat',
    'ends: its node is gone',
    'of lease 1 is completed',
    'of lease 1 is failed',
    'is unknown',
    'it is completed',
    'it is partial',
    'it is failed',
    'it is canceled',
    'cancels swarm_',
    ', key ',
    'is refused: CONFLICT',
    'is refused: DISK_FULL'
  ])
    t.ok(all.includes(what), what)
  const named = [...all.matchAll(/launch \d+ is (swarm_\S+)$/gm)].map(([, id]) => id)
  t.ok(new Set(named).size < named.length, 'a key names a swarm of before')
})
