import test from 'brittle'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import type { SwarmWord } from '../../../../src/node/swarms/consensus/participant.js'
import { Participants, type ParticipantsDeps } from '../../../../src/node/swarms/consensus/participants.js'
import type { SwarmHead } from '../../../../src/node/swarms/store.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

const [self, bob, cyd, dan] = [actor('self').id, actor('bob').id, actor('cyd').id, actor('dan').id]

interface Scene {
  readonly participants: Participants
  /** Calls to the swarm in memory and to the part that joins swarms, in their order. */
  readonly calls: string[]
  readonly lines: string[]
}

/** This node votes in `swarm_1` with two others, and has granted epoch 3. */
function scene(sandboxes: Readonly<Record<NodeId, string>> = {}, fails = false): Scene {
  const calls: string[] = []
  const lines: string[] = []
  const swarm = {
    head: { id: 'swarm_1', voters: [self, bob, cyd] },
    epoch: 3,
    onWord: (_peer: NodeId, { body }: SwarmWord) =>
      fails ? Promise.reject(new Error('no')) : Promise.resolve(calls.push(body.kind)),
    tick: () => calls.push('tick')
  }
  const deps = {
    self,
    hash,
    telemetry: new MemoryTelemetry({
      clock: new ManualClock(),
      level: 'warn',
      format: 'text',
      write: (line) => lines.push(line)
    }),
    directory: { certificate: (node: NodeId) => ({ sandboxId: sandboxes[node] }) },
    memory: { replicated: (id: string) => (id === 'swarm_1' ? swarm : undefined), runningReplicated: () => [swarm] },
    swarmStore: { get: () => Promise.resolve(null) },
    eligibility: { of: () => [] },
    joining: {
      onInvitation: () => Promise.resolve(calls.push('invitation')),
      onPieces: (_peer: NodeId, { swarm: id }: { swarm: string }) => Promise.resolve(id === 'swarm_2')
    }
  }
  return { participants: new Participants(deps as unknown as ParticipantsDeps), calls, lines }
}

const head = {
  id: 'swarm_3',
  request: { goal: 'do it', capability: 'work.do', strategy: 'map' },
  capabilities: ['work.do'],
  stages: [{ id: 'map', capability: 'work.do', rule: 'all', from: 0, count: 1, isList: true, needs: [] }],
  agents: [],
  leftOut: [],
  itemCount: 1,
  createdAt: 0,
  deadline: 60_000,
  expiresAt: 120_000
} as unknown as SwarmHead

test('the nodes of the agents vote, the launcher first; of two nodes the remaining one is no majority', (t) => {
  const { participants } = scene()
  const voters = (agents: readonly string[], more: Partial<SwarmHead> = {}): readonly NodeId[] | undefined =>
    participants.joinedHead({ ...head, ...more }, [{ name: 'first' }], agents).voters
  t.alike(new Set(voters([`w@${bob}`, `v@${bob}`, `w@${cyd}`])), new Set([self, bob, cyd]))
  t.is(voters([`w@${bob}`, `w@${cyd}`])?.[0], self)
  t.is(voters([`w@${bob}`, `v@${bob}`, `w@${self}`]), undefined)
  t.is(voters([`w@${bob}`, `w@${cyd}`], { request: { ...head.request, takeover: false } }), undefined)
  t.is(participants.joinedHead(head, [], [`w@${bob}`, `w@${cyd}`]).voters, undefined, 'a plan that nobody could read')
})

test('only nodes of the same sandbox vote', (t) => {
  const agents = [`w@${bob}`, `w@${cyd}`, `w@${dan}`]
  const { voters } = scene({ [dan]: 'apart' }).participants.joinedHead(head, [{ name: 'first' }], agents)
  t.alike(new Set(voters), new Set([self, bob, cyd]))
})

test('a lease of an earlier epoch is void; only voters count', (t) => {
  const { participants } = scene()
  t.alike(
    [
      participants.isPast(bob, 'swarm_1', 2),
      participants.isPast(bob, 'swarm_1', 3),
      participants.isPast(dan, 'swarm_1', 2)
    ],
    [true, false, false]
  )
  t.alike([participants.has(bob), participants.has(dan)], [true, false])
  t.alike(
    [
      participants.areVoters('swarm_1', [bob, cyd]),
      participants.areVoters('swarm_1', [bob, dan]),
      participants.areVoters('swarm_9', [])
    ],
    [true, false, false]
  )
})

/** Dispatches messages of a peer; each is handled before the next comes. */
async function dispatch({ participants }: Scene, peer: NodeId, ...bodies: readonly object[]): Promise<void> {
  for (const body of bodies) {
    participants.onWord(peer, { name: 'swarm', body } as unknown as SwarmWord)
    await new Promise(setImmediate)
  }
}

test('messages of voters go to their swarm, invitations and plans to the part that joins swarms', async (t) => {
  const one = scene()
  await dispatch(
    one,
    bob,
    { kind: 'seat', swarm: 'swarm_2' },
    { kind: 'pieces', swarm: 'swarm_2' },
    { kind: 'pieces', swarm: 'swarm_1' }
  )
  t.alike(one.calls, ['invitation', 'pieces'])
  await dispatch(one, dan, { kind: 'cancel', swarm: 'swarm_1' })
  await dispatch(one, bob, { kind: 'cancel', swarm: 'swarm_9' }, { kind: 'want', swarm: 'swarm_9' })
  t.alike(one.calls.splice(0), ['invitation', 'pieces'], 'a node without a vote and an unknown swarm are ignored')
  await dispatch(one, bob, { kind: 'seated', swarm: 'swarm_1' })
  t.alike(one.calls, ['seated', 'tick'], 'a node that joined may make the majority that the swarm waits for')
})

test('a message that cannot be handled is logged', async (t) => {
  const one = scene({}, true)
  await dispatch(one, bob, { kind: 'cancel', swarm: 'swarm_1' })
  t.is(one.lines.length, 1)
})
