import test from 'brittle'
import { createMemoryLedger } from '../../../support/memory-ledger.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { PIECE_BYTES, PLAN_INDEX } from '../../../../src/domain/swarm/participant-message.js'
import { pieceOf } from '../../../../src/node/swarms/consensus/content-transfer.js'
import type { SwarmWord } from '../../../../src/node/swarms/consensus/participant.js'
import { Participants, type ParticipantsDeps } from '../../../../src/node/swarms/consensus/participants.js'
import { VoteStore } from '../../../../src/node/swarms/consensus/vote-store.js'
import { SwarmMemory } from '../../../../src/node/swarms/memory.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { actor, hash } from '../../../support/membership.js'

const launcher: NodeId = actor('launcher').id
/** Plans, and the pieces of each: more than there is room for at once. */
const [PLANS, PIECES] = [7, 8]
/** One piece comes in so many milliseconds, of whichever plan it was asked for first. */
const PIECE_MS = 250

test('more large plans than there is room for all come, however often each is offered again meanwhile', async (t) => {
  const clock = new ManualClock()
  const swarmVotes = new VoteStore(createMemoryLedger(), hash)
  const asked: { readonly swarm: string; readonly digest: string; readonly at: number }[] = []
  const parts = {
    clock,
    swarmVotes,
    ledgerQuota: { isFull: false },
    // What comes is no plan: nothing is made of it.
    directory: { certificate: () => null },
    telemetry: { log: (_level: string, text: string) => t.fail(text) },
    memory: new SwarmMemory(),
    tell: (_to: NodeId, { body }: SwarmWord) => {
      if (body.kind === 'want') asked.push(...body.wants.map(({ digest, at }) => ({ swarm: body.swarm, digest, at })))
    }
  }
  const seats = new Participants(parts as unknown as ParticipantsDeps)
  const plans = new Map<string, Uint8Array>(
    Array.from({ length: PLANS }, (_, at) => [`swarm_${at}`, new Uint8Array(PIECES * PIECE_BYTES).fill(at + 1)])
  )
  const whole = new Set<string>()
  for (let passed = 0; passed < 60_000 && whole.size < PLANS; passed += PIECE_MS) {
    for (const [swarm, bytes] of passed % 1000 === 0 ? plans : []) {
      if (whole.has(swarm)) continue
      const body = { kind: 'seat', swarm, digest: swarmVotes.digest(bytes), bytes: bytes.byteLength, ledger: null } as const
      seats.onWord(launcher, { name: 'swarm', body })
    }
    const next = asked.shift()
    const bytes = next === undefined ? undefined : plans.get(next.swarm)
    if (next !== undefined && bytes !== undefined) {
      const { swarm, digest, at } = next
      seats.onWord(launcher, {
        name: 'swarm',
        body: { kind: 'pieces', swarm, pieces: [pieceOf({ index: PLAN_INDEX, digest }, bytes, at)] }
      })
      if (at === bytes.byteLength - PIECE_BYTES) whole.add(swarm)
    }
    await new Promise(setImmediate)
    clock.advance(PIECE_MS)
  }
  t.is(whole.size, PLANS)
})
