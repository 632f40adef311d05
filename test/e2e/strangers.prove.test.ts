import { execFileSync } from 'node:child_process'
import test from 'brittle'
import { encodeGateMessage } from '../../src/adapters/mesh/links/hello.js'
import { dial, rawDht } from '../adapters/mesh/raw-stream.js'
import { type TestNode, testMesh, untilOnline } from '../support/nodes.js'

/**
 * What a second flood may add to the resident memory of a node that had one: room for garbage that is not collected
 * yet.
 */
const MAX_GROWTH_KIB = 24 * 1024
const AT_ONCE = 8

/** Resident memory in KiB. */
function residentKib({ process: { pid } }: TestNode): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }))
}

test('two hundred strangers with fresh keys, and as many again: none gets in, the memory of the node stays flat', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const [node, other] = (await mesh.meshOf('a', 'b')) as [TestNode, TestNode]
  const dht = await rawDht(t, [{ host: '127.0.0.1', port: mesh.port }])
  const lie = encodeGateMessage({ type: 'hello', version: 1, maxFrameBytes: 1024 * 1024, software: 'x', proof: 'ff' })
  let streams = 0

  async function stranger(): Promise<void> {
    const one = await dial(dht, { id: node.info.node.id }).catch(() => null)
    if (one === null) return
    streams++
    one.gate.messages[0]?.send(lie)
    for (const protocol of ['a2a-node/a2a', 'a2a-node/log', 'hypercore/alpha'])
      one.mux.createChannel({ protocol })?.open()
    await one.closed
  }

  async function flood(count: number): Promise<number> {
    let left = count
    const next = async (): Promise<void> => {
      while (left-- > 0) await stranger()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
    return residentKib(node)
  }

  const before = residentKib(node)
  const first = await flood(200)
  const last = await flood(200)
  t.comment(`resident: ${before} KiB, ${first} after 200, ${last} after 400; ${streams} streams opened`)
  t.ok(streams >= 40, `${streams} of them got a stream, the others were refused`)
  t.ok(last - first <= MAX_GROWTH_KIB, `${last - first} KiB more after as many again`)
  const { peers } = await node.api.call('peers.list', { all: true })
  t.alike(
    peers.map(({ name }) => name),
    ['b'],
    'nobody but the member is a peer'
  )
  await untilOnline(other, 1)
  t.is((await other.cli(['ping', 'a'])).code, 0, 'members are served')
})
