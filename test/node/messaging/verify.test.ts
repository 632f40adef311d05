import test from 'brittle'
import { addressText, parseAddress } from '../../../src/domain/card/card.js'
import type { EnvelopeHeader } from '../../../src/domain/envelope/header.js'
import {
  CLAIM_WAIT_MS,
  EarlyClaims,
  MAX_EARLY_BYTES,
  MAX_EARLY_CLAIMS,
  verifyParties
} from '../../../src/node/messaging/verify.js'
import type { ReadTurn } from '../../../src/node/messaging/verify.js'
import { ManualClock } from '../../support/manual-clock.js'
import { actor, certificateBody } from '../../support/membership.js'

const [peer, here, hop, gone] = [actor('peer'), actor('here'), actor('hop'), actor('gone')]
const SENDER = { agentId: 'writer', nodeId: peer.id }
const RECIPIENT = { agentId: 'text', nodeId: here.id }

/** A directory in which every agent has a card of tier 1, but for `ghost`, and `hop` is a member of tier 2. */
const DIRECTORY: Parameters<typeof verifyParties>[0] = {
  named: (text) => {
    const address = parseAddress(text)
    if (address === null) return null
    const party = address.agentId === 'ghost' ? null : { address: text, tier: 1 as const, sandboxId: null }
    return { address, party, card: undefined }
  },
  certificate: (node) => (node === hop.id ? certificateBody({ issuer: here, node: hop, maxTier: 2 }) : null)
}

function verified(header: Partial<EnvelopeHeader> = {}, origin = peer.id): ReturnType<typeof verifyParties> {
  const whole = { id: 'm1', sender: addressText(SENDER), recipient: addressText(RECIPIENT), type: 'request', ...header }
  return verifyParties(DIRECTORY, { origin, target: here.id, header: whole as EnvelopeHeader })
}

/** What a message is refused for, what it counts against its peer, and whether its sender is told. */
function rejection(...message: Parameters<typeof verified>): readonly unknown[] {
  const result = verified(...message)
  return 'refusal' in result ? [result.refusal.rule, result.strike, result.parties !== null] : ['verified']
}

test('a message of the node that it names, for an agent of this node, is verified with both parties', (t) => {
  const result = verified()
  if ('refusal' in result) return t.fail(result.refusal.reason)
  t.alike([result.sender, result.recipient, result.party.tier, result.party], [SENDER, RECIPIENT, 1, result.certified])
})

test('a forged sender or recipient is a strike, without an answer', (t) => {
  t.alike(rejection({}, gone.id), ['sender: the key of the stream', 'forged', false])
  t.alike(rejection({ sender: 'no address' }), ['sender: the key of the stream', 'forged', false])
  t.alike(rejection({ recipient: addressText({ agentId: 'text', nodeId: gone.id }) }), [
    'recipient: an agent of this node',
    'forged',
    false
  ])
})

test('a sender without a card gets an error, and it is no offence', (t) => {
  t.alike(rejection({ sender: addressText({ agentId: 'ghost', nodeId: peer.id }) }), [
    'sender: a signed card',
    null,
    true
  ])
})

test('a claim of more than the card gives is refused, a weaker one is honoured', (t) => {
  const claims = (tier: 0 | 1 | 3, sandboxId?: string): Partial<EnvelopeHeader> => ({
    metadata: sandboxId === undefined ? { tier } : { tier, sandboxId }
  })
  t.alike(rejection(claims(0)), ['claims: as certified', 'doubtful', true])
  const weak = verified(claims(3, 'lab'))
  if ('refusal' in weak) return t.fail(weak.refusal.reason)
  t.alike([weak.party.tier, weak.party.sandboxId, weak.certified.tier], [3, 'lab', 1])
})

test('a relay weakens the message to its own tier, and one that is no member stops it', (t) => {
  const relayed = (hops: readonly string[]): Partial<EnvelopeHeader> => ({ metadata: { tier: 1, hops } })
  const result = verified(relayed([hop.id]))
  if ('refusal' in result) return t.fail(result.refusal.reason)
  t.alike([result.party.tier, result.certified.tier], [2, 1])
  t.alike(rejection(relayed([hop.id, gone.id])), ['hops: members', null, true])
})

test('messages with early claims wait within a number for each peer and bytes for all, which a refusal frees', async (t) => {
  const clock = new ManualClock()
  const turns: ReadTurn[] = []
  const read = (_peer: unknown, _message: unknown, turn: ReadTurn = 'only'): 'early' | null => {
    turns.push(turn)
    return turn === 'only' || turn === 'last' ? null : 'early'
  }
  const claims = new EarlyClaims({ clock, verification: { read } })
  const arrives = (from: typeof peer, bytes: number): ReturnType<EarlyClaims['read']> =>
    claims.read(from.id, { bytes: new Uint8Array(bytes), lane: null, hops: [] })
  for (const round of [1, 2]) {
    const waiting = Array.from({ length: MAX_EARLY_CLAIMS }, () => arrives(peer, 1))
    t.ok(
      waiting.every((one) => one instanceof Promise),
      `round ${round}`
    )
    t.is(arrives(peer, 1), null, 'one more of this peer')
    t.is(arrives(hop, MAX_EARLY_BYTES), null, 'more bytes than all may have')
    const last = arrives(hop, MAX_EARLY_BYTES - MAX_EARLY_CLAIMS)
    t.ok(last instanceof Promise)
    t.is(arrives(gone, 1), null)
    for (let ms = 0; ms < CLAIM_WAIT_MS; ms += 100) {
      clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.alike(await Promise.all([...waiting, last]), Array(MAX_EARLY_CLAIMS + 1).fill(null))
  }
  t.is(turns.filter((turn) => turn === 'last').length, 2 * (MAX_EARLY_CLAIMS + 1))
})
