import assert from 'node:assert/strict'
import type { Assert } from 'brittle'
import type { SwarmInfo, SwarmResults } from '../../src/ports/swarm-api.js'
import { MortalLedger } from './durable-scene.js'
import { agentDefinition, capability, FakeAgent } from './fake-agents.js'
import { type FakeNode, World } from './fake-node.js'

/** A node that may be killed, its agent and what is on its disk. */
export interface Member {
  node: FakeNode
  agent: FakeAgent
  ledger: MortalLedger
}

/** Three nodes, each linked with each and with an agent `w`, that may be killed. */
export class VotersScene {
  readonly world: World
  readonly members: Member[] = []
  /** Runs that were begun anywhere, by the item's request id. */
  readonly begun: string[] = []

  private constructor(t: Assert) {
    this.world = new World(t)
  }

  /** `policy`: of each node; `mine`: names of machines of the launcher's person. */
  static async start(
    t: Assert,
    names: readonly string[] = ['b', 'c'],
    { policy = '', mine = [] as readonly string[] } = {}
  ): Promise<VotersScene> {
    const scene = new VotersScene(t)
    const first = { agent: define(scene.begun), ledger: new MortalLedger() }
    scene.members.push({
      ...first,
      node: await scene.world.owner({ agents: [first.agent], ledger: first.ledger, policy })
    })
    for (const name of names) {
      const made = { agent: define(scene.begun), ledger: new MortalLedger() }
      scene.members.push({
        ...made,
        node: await scene.world.member(name, {
          agents: [made.agent],
          ledger: made.ledger,
          policy,
          ...termsOf(mine, name)
        })
      })
    }
    await scene.world.link(...scene.members.map(({ node }) => node))
    return scene
  }

  at(index: number): Member {
    const member = this.members[index]
    if (member === undefined) throw new Error('no such member')
    return member
  }

  /** Who takes over from the launcher, and who does then. */
  rest(id: string): [Member, Member] {
    const voters = this.at(0).node.core.swarms.inMemory(id)?.head?.voters ?? []
    const [next, other] = voters.slice(1).flatMap((voter) => this.members.filter(({ node }) => node.id === voter))
    if (next === undefined || other === undefined) throw new Error('they do not vote')
    return [next, other]
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

  /** Its process starts again, with what was on its disk unless that is lost. */
  async restart(member: Member, isLost = false): Promise<void> {
    member.ledger = isLost ? new MortalLedger() : member.ledger
    member.agent = define(this.begun)
    const { store, actor, policy } = member.node
    member.node = await this.world.start(actor, {
      store,
      ledger: member.ledger,
      agents: [member.agent],
      policy: policy.text
    })
    await this.link(member)
  }

  /** Links a node with all others. */
  async link(member: Member): Promise<void> {
    for (const other of this.members) {
      const isApart = other !== member && !this.world.net.isConnected(member.node.id, other.node.id)
      if (isApart && !other.ledger.isDead) this.world.net.connect(member.node.id, other.node.id)
    }
    await this.world.settle()
  }

  async cut(member: Member): Promise<void> {
    for (const other of this.members) if (other !== member) this.world.net.disconnect(member.node.id, other.node.id)
    await this.world.settle()
  }

  async rows(member: Member, id: string): Promise<SwarmResults['results']> {
    return (await member.node.core.swarms.find(id)).results().results
  }

  /** All that are there have the same results; gives them. */
  async same(id: string, members: readonly Member[] = this.members): Promise<SwarmResults> {
    const all = await Promise.all(members.map(async ({ node }) => (await node.core.swarms.find(id)).results()))
    for (const one of all) assert.deepEqual(one, all[0])
    const [first] = all
    if (first === undefined) throw new Error('no members')
    return first
  }

  async pass(ms: number, members: readonly Member[] = this.members): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      this.finishRuns(members)
      await this.world.pass(500)
    }
  }
}

/** Guests take part in it. */
const READS = { sideEffect: 'read' } as const

function termsOf(mine: readonly string[], name: string): { readonly terms?: { readonly trust: 'mine' } } {
  return mine.includes(name) ? { terms: { trust: 'mine' } } : {}
}

function define(begun: string[]): FakeAgent {
  const capabilities = [capability('work.again', READS), capability('work.once', { ...READS, idempotent: false })]
  return new FakeAgent(agentDefinition('w', { capabilities, concurrency: 1 }), ({ requestId }) => {
    begun.push(requestId)
    return null
  })
}
