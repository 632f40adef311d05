import test, { type Assert } from 'brittle'
import { keyToText } from '../../src/kit/ids.js'
import { type AttackScene, attackScene, EvilCalls, figuresOf } from '../support/attack-scene.js'
import type { Eve } from '../support/hostile.js'
import { untilPeer, untilTrue } from '../support/nodes.js'

/** Honest calls beside each attack; `npm run hostile` makes more. */
const CALLS = Number(process.env['HOSTILE_CALLS'] ?? 100)

const LARGE_LIST = { historyLength: 10, pageSize: 100 }

/** What Eve prepares, by the titles of tests. It gives what she does. */
const ATTACKS: Readonly<Record<string, (scene: AttackScene) => Promise<Attack>>> = {
  'a member that asks for large answers and reads none of them stops nobody, and can be put out': async ({ eve }) => {
    const calls = new EvilCalls(eve)
    await calls.tasks(170, 90_000)
    calls.stop()
    for (let at = 0; at < 64; at++) await calls.call('ListTasks', LARGE_LIST)
    return {
      before: () => Promise.resolve(),
      end: async () => {
        calls.go()
        await untilTold(eve, 1_000_000)
      }
    }
  },
  'a member that asks for large answers all the time stops nobody, and can be put out': async ({ eve }) => {
    const calls = new EvilCalls(eve)
    await calls.tasks(170, 90_000)
    return { before: () => calls.call('ListTasks', LARGE_LIST), end: () => untilTold(eve, 1_000_000) }
  },
  'a member that creates documents with long access lists stops nobody, and can be put out': ({ eve: { member } }) => {
    const { log, meshId: mesh } = member.mesh
    const members = Array.from({ length: 256 }, (_, at) => keyToText(new Uint8Array(32).fill(at)))
    const rule = { members, maxTier: null, sandboxes: [], unsandboxed: false }
    let count = 0
    const create = (): void => {
      // What is over the share is refused.
      log.submit({ kind: 'document', mesh, name: `a${count++}`, access: { see: rule, write: rule, serial: 1 }, at: 1 }).catch(() => {})
    }
    const end = async (): Promise<void> => {
      const isThere = (): boolean => log.view().documents.size > 30
      if (!isThere()) await new Promise<void>((resolve) => log.onChange(() => isThere() && resolve()))
    }
    return Promise.resolve({ before: () => Promise.resolve(create()), end })
  },
  'a member that asks for what a pattern takes minutes to look at stops nobody, and can be put out': ({ eve, victim }) => {
    let count = 0
    const ask = (): Promise<void> => {
      const input = { name: `${'a'.repeat(36)}!` }
      const payload = { requestId: `evil_${count++}`, attempt: 1, capability: 'hosts.find', input, description: '', swarm: null }
      return eve.send({ recipient: `hosts@${eve.victim.id}`, payload })
    }
    const refused = async (): Promise<number> => {
      const { counters } = await victim.api.call('node.metrics', {})
      return counters.find(({ name, label }) => name === 'messages_sent' && label === 'error')?.value ?? 0
    }
    const end = (): Promise<void> => untilTrue(async () => (await refused()) >= CALLS, 'each is looked at and refused')
    return Promise.resolve({ before: ask, end })
  }
}

interface Attack {
  /** Before each honest call. */
  before(): Promise<void>
  /** Resolves when the victim has done what it was to do: else nothing was attacked. */
  end(): Promise<void>
}

/** Resolves when the victim has told Eve so many bytes. */
function untilTold({ member, victim }: Eve, bytes: number): Promise<void> {
  const told = (): number => member.seen.frames.reduce((sum, { link, frame }) => sum + (link.peer === victim.id ? frame.byteLength : 0), 0)
  return member.seen.until(() => told() > bytes)
}

for (const [title, prepare] of Object.entries(ATTACKS))
  test(title, { timeout: 600_000 }, async (t: Assert) => {
    const scene = await attackScene(t)
    const quiet = await figuresOf(scene, CALLS)
    const attack = await prepare(scene)
    const busy = await figuresOf(scene, CALLS, () => attack.before())
    await attack.end()
    t.comment(`${title}: ${JSON.stringify({ quiet, busy })}`)
    t.ok(busy.rss < quiet.rss + 110, `${busy.rss} MiB, ${quiet.rss} before`)
    const { code, stderr } = await scene.victim.cli(['peers', 'revoke', 'eve'])
    t.is(code, 0, stderr)
    await untilPeer(scene.bob, 'eve', 'revoked')
    await untilTrue(() => scene.eve.member.seen.closed.length > 0, 'she is cut')
    for (const node of [scene.victim, scene.bob]) t.is((await node.api.call('node.status', {})).state, 'running')
  })
