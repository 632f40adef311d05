import test, { type Assert } from 'brittle'
import type { NodeId } from '../../../../src/kit/ids.js'
import { PIECE_BYTES, PLAN_INDEX } from '../../../../src/domain/swarm/participant-message.js'
import { pieceOf } from '../../../../src/node/swarms/consensus/content-transfer.js'
import { planOf } from '../../../../src/node/swarms/consensus/invitations.js'
import { Joining, type JoiningDeps } from '../../../../src/node/swarms/consensus/joining.js'
import type { SwarmWord } from '../../../../src/node/swarms/consensus/participant.js'
import type { OpenMembership } from '../../../../src/node/swarms/consensus/replicated-swarm.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import { type SwarmHead, SwarmStore } from '../../../../src/node/swarms/store.js'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

const [launcher, self, other] = [actor('launcher').id, actor('self').id, actor('other').id]
const TIER = 2

interface FakeReplica extends Pick<OpenMembership, 'head' | 'record'> {
  /** Starts of this node as a voter. */
  readonly opened: string[]
  /** Ledger names that the launcher confirmed. */
  readonly confirmed: string[]
}

interface Scene {
  readonly clock: ManualClock
  readonly joining: Joining
  readonly swarmVotes: VoteStore
  readonly swarmStore: SwarmStore
  readonly sent: { readonly to: NodeId; readonly body: SwarmWord['body'] }[]
  readonly replicas: Map<string, FakeReplica>
  isFull: boolean
}

function scene(): Scene {
  const clock = new ManualClock()
  const ledger = createMemoryLedger()
  const [swarmVotes, swarmStore] = [new VoteStore(ledger, hash), new SwarmStore(ledger, hash)]
  const replicas = new Map<string, FakeReplica>()
  const sent: Scene['sent'] = []
  const deps = {
    ...{ clock, self, swarmVotes, swarmStore },
    commit: ledger.commit.bind(ledger),
    ledgerQuota: {
      get isFull() {
        return made.isFull
      }
    },
    directory: { certificate: () => ({ maxTier: TIER }) },
    ledgerName: () => 'own ledger',
    memory: {
      add: (swarm: FakeReplica) => replicas.set(swarm.head.id, swarm),
      replicated: (id: string) => replicas.get(id),
      runningReplicated: () => [...replicas.values()]
    },
    tell: (to: NodeId, { body }: SwarmWord) => sent.push({ to, body }),
    createReplica: ({ head, record }: OpenMembership) => {
      const opened: string[] = []
      const confirmed: string[] = []
      const open = ({ type }: { type: string }): unknown => opened.push(type)
      return {
        head,
        record,
        opened,
        confirmed,
        open,
        isOpen: false,
        confirm: (name: string) => Promise.resolve(confirmed.push(name))
      }
    }
  }
  const joining = new Joining(deps as unknown as JoiningDeps)
  const made: Scene = { clock, joining, swarmVotes, swarmStore, sent, replicas, isFull: false }
  return made
}

const head: SwarmHead = {
  id: 'swarm_1',
  taskId: 'task_1',
  request: { goal: 'do it', capability: 'work.do', strategy: 'map' },
  capabilities: ['work.do'],
  stages: [{ id: 'map', capability: 'work.do', rule: 'all', from: 0, count: 1, isList: true, needs: [] }],
  agents: ['w@self'],
  leftOut: [],
  itemCount: 1,
  createdAt: 0,
  deadline: 60_000,
  expiresAt: 120_000,
  voters: [launcher, self, other],
  key: null,
  end: null
}

/** Invites this node, and sends the plan it asks for. */
async function invite(
  { joining, swarmVotes, clock }: Scene,
  { peer = launcher, ledger = null, ...more }: Partial<SwarmHead> & { peer?: NodeId; ledger?: string | null } = {}
): Promise<void> {
  const now = clock.now()
  const plan = { ...head, createdAt: now, deadline: now + 60_000, expiresAt: now + 120_000, ...more }
  const bytes = planOf(plan, [{ name: 'first' }])
  const digest = swarmVotes.digest(bytes)
  await joining.onInvitation(peer, { kind: 'seat', swarm: plan.id, digest, bytes: bytes.byteLength, ledger })
  const pieces = [pieceOf({ index: PLAN_INDEX, digest }, bytes, 0)]
  await joining.onPieces(peer, { kind: 'pieces', swarm: plan.id, pieces })
}

function kindsOf({ sent }: Scene): string[] {
  return sent.map(({ body }) => body.kind)
}

test('a node that joins records the plan and itself before it reports that, with the rights of the launcher', async (t) => {
  const one = scene()
  await invite(one)
  t.alike(kindsOf(one), ['want', 'seated'])
  t.alike(one.sent.at(-1), {
    to: launcher,
    body: { kind: 'seated', swarm: 'swarm_1', ledger: 'own ledger', isOpen: false }
  })
  t.alike(await one.swarmVotes.participant('swarm_1'), { ledger: 'own ledger', state: 'invited', seated: {} })
  const kept = await one.swarmStore.get('swarm_1')
  t.alike([kept?.taskId, kept?.onBehalfOf], ['', { maxTier: TIER, sandboxId: null }])
  t.alike(one.replicas.get('swarm_1')?.opened, [], 'it votes once the launcher has confirmed it')
})

test('a node that joined before under another ledger has lost its promises', async (t) => {
  const one = scene()
  await invite(one, { ledger: 'earlier ledger' })
  t.is((await one.swarmVotes.participant('swarm_1'))?.state, 'lost')
  t.alike(one.replicas.get('swarm_1')?.opened, ['lost'])
})

test('a repeated invitation confirms the ledger, and only the launcher may invite', async (t) => {
  const one = scene()
  await invite(one)
  await invite(one, { ledger: 'own ledger' })
  await invite(one, { ledger: 'own ledger', peer: other })
  t.alike(one.replicas.get('swarm_1')?.confirmed, ['own ledger'])
  t.alike(kindsOf(one), ['want', 'seated', 'seated'])
})

async function refuses(t: Assert, one: Scene, more: Parameters<typeof invite>[1]): Promise<void> {
  await invite(one, more)
  t.absent(one.replicas.has(more?.id ?? 'swarm_1'))
  t.absent(kindsOf(one).includes('seated'))
}

test('a node joins no swarm of another launcher or without a vote, nor one that it knows, nor with a full ledger', async (t) => {
  await refuses(t, scene(), { voters: [other, launcher, self] })
  await refuses(t, scene(), { voters: [launcher, other] })
  const full = scene()
  full.isFull = true
  await refuses(t, full, {})
  t.alike(full.sent, [])
  const known = scene()
  await invite(known)
  known.replicas.clear()
  known.sent.length = 0
  await refuses(t, known, {})
})

test('of one launcher a node joins 64 open swarms, of all launchers 256', async (t) => {
  const one = scene()
  const add = (from: number, count: number, first: NodeId): void => {
    for (let n = from; n < from + count; n++) {
      const id = `swarm_open${n}`
      one.replicas.set(id, {
        head: { ...head, id, voters: [first] },
        opened: [],
        confirmed: []
      } as unknown as FakeReplica)
    }
  }
  add(0, 64, launcher)
  await refuses(t, one, {})
  add(64, 191, other)
  one.replicas.delete('swarm_open0')
  await invite(one)
  t.ok(one.replicas.has('swarm_1'))
  add(0, 1, other)
  one.replicas.delete('swarm_open1')
  add(300, 1, other)
  one.sent.length = 0
  await refuses(t, one, { id: 'swarm_2' })
})

/** Plans, and the pieces of each: more than there is room for at once. */
const [PLANS, PIECES] = [7, 8]
/** One piece comes in so many milliseconds, of whichever plan it was asked for first. */
const PIECE_MS = 250

test('more large plans than memory allows at once all arrive, for any number of repeated offers', async (t) => {
  const { clock, joining, swarmVotes, sent } = scene()
  // What comes is no plan: nothing is made of it.
  const plans = new Map<string, Uint8Array>(
    Array.from({ length: PLANS }, (_, at) => [`swarm_${at}`, new Uint8Array(PIECES * PIECE_BYTES).fill(at + 1)])
  )
  const whole = new Set<string>()
  const asked: { readonly swarm: string; readonly digest: string; readonly at: number }[] = []
  for (let passed = 0; passed < 60_000 && whole.size < PLANS; passed += PIECE_MS) {
    for (const [swarm, bytes] of passed % 1000 === 0 ? plans : []) {
      if (whole.has(swarm)) continue
      const body = {
        kind: 'seat',
        swarm,
        digest: swarmVotes.digest(bytes),
        bytes: bytes.byteLength,
        ledger: null
      } as const
      await joining.onInvitation(launcher, body)
    }
    for (const { body } of sent.splice(0))
      if (body.kind === 'want') asked.push(...body.wants.map((want) => ({ ...want, swarm: body.swarm })))
    const next = asked.shift()
    const bytes = next === undefined ? undefined : plans.get(next.swarm)
    if (next !== undefined && bytes !== undefined) {
      const { swarm, digest, at } = next
      await joining.onPieces(launcher, {
        kind: 'pieces',
        swarm,
        pieces: [pieceOf({ index: PLAN_INDEX, digest }, bytes, at)]
      })
      if (at === bytes.byteLength - PIECE_BYTES) whole.add(swarm)
    }
    clock.advance(PIECE_MS)
  }
  t.is(whole.size, PLANS)
})
