import test from 'brittle'
import { SwarmMemory, type SwarmHere } from '../../../src/node/swarms/memory.js'

const MIB = 1024 * 1024

interface FakeSwarm {
  readonly head: { readonly id: string }
  isRunning: boolean
  bytes: number
}

function add(memory: SwarmMemory, id: string, { isRunning = false, bytes = 0 } = {}): FakeSwarm {
  const swarm = { head: { id }, isRunning, bytes }
  memory.add(swarm as unknown as SwarmHere)
  return swarm
}

test('the hundred newest swarms stay in memory; the oldest ended ones are evicted first, running ones never', (t) => {
  const memory = new SwarmMemory()
  const oldest = add(memory, 'swarm_0', { isRunning: true })
  for (let n = 1; n < 103; n++) add(memory, `swarm_${n}`)
  memory.evict()
  t.is(memory.all.size, 100)
  t.alike([...memory.all.keys()].slice(0, 2), ['swarm_0', 'swarm_4'])
  oldest.isRunning = false
  add(memory, 'swarm_103')
  memory.evict()
  t.is(memory.get('swarm_0'), undefined)
})

test('ended swarms are dropped for results; the results of running swarms may take 128 MiB', (t) => {
  const memory = new SwarmMemory()
  add(memory, 'swarm_ended', { bytes: 100 * MIB })
  const running = add(memory, 'swarm_running', { isRunning: true, bytes: 100 * MIB })
  t.ok(memory.hasCapacity(28 * MIB))
  t.alike([...memory.all.keys()], ['swarm_running'])
  t.absent(memory.hasCapacity(28 * MIB + 1))
  t.is(memory.evict(), 100 * MIB)
  running.isRunning = false
  t.ok(memory.hasCapacity(28 * MIB + 1))
  t.is(memory.all.size, 0)
})

test('running swarms are listed apart; a swarm of this node alone is not replicated', (t) => {
  const memory = new SwarmMemory()
  add(memory, 'swarm_ended')
  add(memory, 'swarm_running', { isRunning: true })
  t.alike(
    memory.running().map(({ head }) => head.id),
    ['swarm_running']
  )
  t.alike(memory.runningReplicated(), [])
  t.is(memory.replicated('swarm_running'), undefined)
})
