import test, { type Assert } from 'brittle'
import { NodeError } from '../../../../src/kit/errors.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import { MemoryTelemetry } from '../../../../src/adapters/telemetry/memory-telemetry.js'
import { Invitations } from '../../../../src/node/swarms/consensus/invitations.js'
import type { SwarmHead } from '../../../../src/node/swarms/store.js'
import { type ParticipantRecord, VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import type { LedgerChange } from '../../../../src/ports/ledger.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

const [launcher, bob, cyd] = [actor('launcher').id, actor('bob').id, actor('cyd').id]

interface Scene {
  readonly offers: Invitations
  /** Under which name of its ledger each was offered its seat. */
  readonly offered: { readonly to: NodeId; readonly ledger: string | null }[]
  /** What the disk holds of the seat. */
  kept(): Promise<ParticipantRecord | null>
  /** How each commit ends from now on. */
  onCommit: () => Promise<void>
}

function sceneOf(t: Assert, seat: ParticipantRecord): Scene {
  const clock = new ManualClock()
  const telemetry = new MemoryTelemetry({ clock, level: 'error', format: 'text', write: () => {} })
  const ledger = createMemoryLedger()
  const swarmVotes = new VoteStore(ledger, hash)
  const scene: Omit<Scene, 'offers'> = {
    offered: [],
    kept: () => swarmVotes.participant('swarm_1'),
    onCommit: () => Promise.resolve()
  }
  const commit = async (changes: readonly LedgerChange[]): Promise<void> => {
    await scene.onCommit()
    await ledger.commit(changes)
  }
  const head = { id: 'swarm_1', itemCount: 1 } as SwarmHead
  const tell: ConstructorParameters<typeof Invitations>[0]['tell'] = (to, { body }) => {
    if (body.kind === 'seat') scene.offered.push({ to, ledger: body.ledger })
    else t.fail('nothing else is sent')
  }
  const parts = { clock, telemetry, self: launcher, swarmVotes, commit, tell }
  const offering = { head, voters: [launcher, bob, cyd], own: seat, items: () => Promise.resolve([]) }
  return Object.assign(scene, { offers: new Invitations(parts, offering) })
}

function seatedOf(from: string): { kind: 'seated'; swarm: string; ledger: string; isOpen: boolean } {
  return { kind: 'seated', swarm: 'swarm_1', ledger: `ledger of ${from}`, isOpen: false }
}

test('an invitation names a ledger only once that name is on record', async (t) => {
  const scene = sceneOf(t, { ledger: 'own', state: 'open', seated: {} })
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => (go = resolve))
  scene.onCommit = () => gate
  const seated = [scene.offers.onJoined(bob, seatedOf('bob')), scene.offers.onJoined(cyd, seatedOf('cyd'))]
  scene.offers.tick()
  await new Promise(setImmediate)
  t.alike(new Set(scene.offered.map(({ ledger }) => ledger)), new Set([null]))
  go()
  await Promise.all(seated)
  const names = { [bob]: 'ledger of bob', [cyd]: 'ledger of cyd' }
  t.alike((await scene.kept())?.seated, names, 'both, though they came at once')
  t.alike(Object.fromEntries(scene.offered.slice(-2).map(({ to, ledger }) => [to, ledger])), names)
})

test('a join that could not be recorded is recorded when its participant reports it again', async (t) => {
  const scene = sceneOf(t, { ledger: 'own', state: 'open', seated: {} })
  scene.onCommit = () => Promise.reject(new NodeError('DISK_FULL', 'no space left'))
  await scene.offers.onJoined(bob, seatedOf('bob'))
  t.is(await scene.kept(), null)
  t.alike(scene.offered, [])
  scene.onCommit = () => Promise.resolve()
  await scene.offers.onJoined(bob, seatedOf('bob'))
  t.alike((await scene.kept())?.seated, { [bob]: 'ledger of bob' })
  t.alike(scene.offered, [{ to: bob, ledger: 'ledger of bob' }])
})

test('a launcher that learned again its lost state keeps the names of participants that joined meanwhile', async (t) => {
  const scene = sceneOf(t, { ledger: 'own', state: 'lost', seated: { [bob]: 'ledger of bob' } })
  await Promise.all([scene.offers.onJoined(cyd, seatedOf('cyd')), scene.offers.relearned()])
  t.alike(await scene.kept(), {
    ledger: 'own',
    state: 'open',
    seated: { [bob]: 'ledger of bob', [cyd]: 'ledger of cyd' }
  })
})
