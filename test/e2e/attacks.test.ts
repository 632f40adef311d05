import test, { type Assert } from 'brittle'
import { keyToText } from '../../src/kit/ids.js'
import { type AttackScene, attackScene, EvilCalls, figuresOf } from '../support/attack-scene.js'
import { untilPeer, untilTrue } from '../support/nodes.js'

/** `npm run hostile` makes the attacks longer. */
const SECONDS = Number(process.env['HOSTILE_SECONDS'] ?? 2)

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function during(run: () => Promise<void>): Promise<void> {
  const end = Date.now() + SECONDS * 1000
  while (Date.now() < end) await run()
}

/** What Eve does, after what she prepares. */
const ATTACKS: Readonly<Record<string, (scene: AttackScene) => Promise<() => Promise<void>>>> = {
  'asks for large answers and reads none of them': async ({ eve }) => {
    const calls = new EvilCalls(eve)
    await calls.tasks(170, 90_000)
    return async () => {
      calls.stop()
      for (let at = 0; at < 64; at++) await calls.call('ListTasks', { historyLength: 10, pageSize: 100 })
      await pause(SECONDS * 1000)
      calls.go()
    }
  },
  'asks for large answers fifty times a second': async ({ eve }) => {
    const calls = new EvilCalls(eve)
    await calls.tasks(170, 90_000)
    return () =>
      during(async () => {
        await calls.call('ListTasks', { historyLength: 10, pageSize: 100 })
        await pause(20)
      })
  },
  'creates documents with long access lists': async ({ eve: { member } }) => {
    const { log, meshId: mesh } = member.mesh
    const members = Array.from({ length: 256 }, (_, at) => keyToText(new Uint8Array(32).fill(at)))
    const rule = { members, maxTier: null, sandboxes: [], unsandboxed: false }
    let count = 0
    return () =>
      during(async () => {
        const access = { see: rule, write: rule, serial: 1 }
        // What is over the share is refused.
        await log.submit({ kind: 'document', mesh, name: `a${count++}`, access, at: Date.now() }).catch(() => {})
      })
  },
  'asks for what a pattern takes minutes to look at':
    async ({ eve }) =>
    () =>
      during(async () => {
        const input = { name: `${'a'.repeat(36)}!` }
        await eve.send({
          recipient: `hosts@${eve.victim.id}`,
          payload: { requestId: `evil_${Math.random()}`, attempt: 1, capability: 'hosts.find', input, description: '', swarm: null }
        })
        await pause(20)
      })
}

for (const [what, prepare] of Object.entries(ATTACKS))
  test(`a member that ${what} stops nobody, and can be put out`, { timeout: 240_000 }, async (t: Assert) => {
    const scene = await attackScene(t)
    const quiet = await figuresOf(scene, () => pause(SECONDS * 1000))
    const attack = await prepare(scene)
    const busy = await figuresOf(scene, attack)
    t.comment(`${what}: ${JSON.stringify({ quiet, busy })}`)
    t.ok(busy.rss < quiet.rss + 100, `${busy.rss} MiB, ${quiet.rss} before`)
    const { code, stderr } = await scene.victim.cli(['peers', 'revoke', 'eve'])
    t.is(code, 0, stderr)
    await untilPeer(scene.bob, 'eve', 'revoked')
    await untilTrue(() => scene.eve.member.seen.closed.length > 0, 'she is cut')
    for (const node of [scene.victim, scene.bob]) t.is((await node.api.call('node.status', {})).state, 'running')
  })
