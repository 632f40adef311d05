import test, { type Assert } from 'brittle'
import type { SwarmInfo } from '../../src/ports/swarm-api.js'
import { agentDefinition, capability, FakeAgent } from '../support/fake-agents.js'
import { type FakeNode, World } from '../support/fake-node.js'
import { MortalLedger } from '../support/durable-scene.js'
import { mapOf } from '../support/swarm-scene.js'

interface Member {
  node: FakeNode
  agent: FakeAgent
  ledger: MortalLedger
}

/** Three nodes, each linked with each and with an agent `w`, that may be killed. */
class Scene {
  readonly world: World
  readonly members: Member[] = []

  private constructor(t: Assert) {
    this.world = new World(t)
  }

  static async start(t: Assert, names: readonly string[] = ['b', 'c']): Promise<Scene> {
    const scene = new Scene(t)
    const first = { agent: define(), ledger: new MortalLedger() }
    scene.members.push({ ...first, node: await scene.world.owner({ agents: [first.agent], ledger: first.ledger }) })
    for (const name of names) {
      const made = { agent: define(), ledger: new MortalLedger() }
      scene.members.push({ ...made, node: await scene.world.member(name, { agents: [made.agent], ledger: made.ledger }) })
    }
    await scene.world.link(...scene.members.map(({ node }) => node))
    return scene
  }

  at(index: number): Member {
    const member = this.members[index]
    if (member === undefined) throw new Error('no such member')
    return member
  }

  /** Every agent does what it has. */
  finishRuns(members: readonly Member[] = this.members): void {
    for (const { agent } of members) for (const run of [...agent.open]) run.end({ ok: true, result: run.task.input })
  }

  async info(member: Member, id: string): Promise<SwarmInfo> {
    return (await member.node.core.swarms.find(id)).info()
  }

  async kill(member: Member): Promise<void> {
    for (const other of this.members) if (other !== member) this.world.net.disconnect(member.node.id, other.node.id)
    member.ledger = member.ledger.kill()
    await member.node.core.close()
    await this.world.settle()
  }

  async pass(ms: number, members: readonly Member[] = this.members): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      this.finishRuns(members)
      await this.world.pass(500)
    }
  }
}

function define(): FakeAgent {
  const capabilities = [capability('work.again'), capability('work.once', { idempotent: false })]
  return new FakeAgent(agentDefinition('w', { capabilities, concurrency: 1 }))
}

test('the launcher is killed for good mid-swarm: another participant finishes it, and the third has the same results', async (t) => {
  const scene = await Scene.start(t)
  const [a, b, c] = [scene.at(0), scene.at(1), scene.at(2)]
  const id = await a.node.core.swarms.launch(mapOf(30))
  await scene.pass(3000)
  const before = await scene.info(a, id)
  t.is(before.coordination?.coordinator, 'owner')
  t.ok(before.counts.completed > 0 && before.counts.completed < 30, `${before.counts.completed} done`)
  const told = (await a.node.core.swarms.find(id)).results().results
  await scene.kill(a)
  const rest = [b, c]
  await scene.pass(60_000, rest)
  for (const member of rest) {
    const { status, counts } = await scene.info(member, id)
    t.is(status, 'completed')
    t.is(counts.completed, 30)
  }
  const results = (await b.node.core.swarms.find(id)).results()
  t.alike(results, (await c.node.core.swarms.find(id)).results())
  for (const one of told)
    t.alike(
      results.results.find(({ item }) => item === one.item),
      one,
      'what was told stays'
    )
})
