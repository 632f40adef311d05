import test from 'brittle'
import { NodeError } from '../../src/kit/errors.js'
import { localMesh, type LocalNode, untilAgent } from '../support/nodes.js'

/** Calls that are under way at once. */
const LANES = 6
const CHANGES = ['L2', 'L1', 'L3', 'L2', 'L1', 'L3', 'L1'] as const

test('messages that flow while the tier of their node changes all arrive: nothing is forbidden, and no member gets a strike', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = (await mesh.meshOf('a', 'b')) as [LocalNode, LocalNode]
  await Promise.all([untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
  const outcomes = new Map<string, number>()
  let isOver = false
  let onOutcome = (): void => {}
  const count = (): number => [...outcomes.values()].reduce((sum, one) => sum + one, 0)
  const lane = async (node: LocalNode, agent: string): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      // An L2 or L3 opens to an L0 with a justification only.
      const call = { agent, capability: 'text.stats', input: { text: `x${n}` }, justification: 'a test' }
      const outcome = await node.api.call('message.call', call).then(
        (reply) => reply.outcome,
        (error: unknown) => (error instanceof NodeError ? `${error.code}: ${error.message}` : String(error))
      )
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      onOutcome()
    }
  }
  const lanes = Array.from({ length: LANES }, (_, n) => (n % 2 === 0 ? lane(b, 'text@a') : lane(a, 'text@b')))
  for (const tier of CHANGES) {
    await a.api.call('peers.tier', { peer: 'b', tier: Number(tier.slice(1)) as 1 | 2 | 3 })
    const enough = count() + 5 * LANES
    await new Promise<void>((resolve) => {
      onOutcome = () => (count() >= enough ? resolve() : undefined)
    })
  }
  isOver = true
  await Promise.all(lanes)
  t.alike([...outcomes.keys()], ['COMPLETED'])
  for (const node of [a, b]) {
    const lines = (await node.cli(['audit', '--json'])).stdout.trim().split('\n')
    const kinds = lines.map((line) => (JSON.parse(line) as { kind: string }).kind)
    t.absent(kinds.includes('strike') || kinds.includes('refusal'), kinds.join())
  }
})
