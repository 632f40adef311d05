import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../../src/kit/errors.js'
import { bytesToText } from '../../../../src/kit/ids.js'
import {
  decodeInviteCode,
  encodeInviteCode,
  INVITE_NETWORKS,
  type InviteCode,
  type LongCode,
  type ShortCode
} from '../../../../src/domain/membership/invites/invite-code.js'
import { hash } from '../../../support/membership.js'
import { holds } from '../../../support/holds.js'

const arbHost = fc.oneof(
  fc.ipV4(),
  fc.ipV6().map((ip) => `[${ip}]`),
  fc.domain()
)
const arbAddress = fc.tuple(arbHost, fc.integer({ min: 1, max: 65_535 })).map(([host, port]) => `${host}:${port}`)
const arbLong: fc.Arbitrary<LongCode> = fc.record({
  kind: fc.constant('long'),
  network: fc.constantFrom(...INVITE_NETWORKS),
  bootstrap: fc.array(arbAddress, { maxLength: 8 }),
  localPort: fc.option(fc.integer({ min: 1, max: 65_535 })),
  root: fc.uint8Array({ minLength: 16, maxLength: 16 }),
  invite: fc.uint8Array({ minLength: 1, maxLength: 200 }),
  trust: fc.constantFrom('mine', 'guest')
})
const arbPort = fc.integer({ min: 1, max: 65_535 })
const arbShortPlace = fc.oneof(
  fc.constant({ network: 'public' as const, bootstrap: [], localPort: null }),
  arbPort.map((localPort) => ({ network: 'local' as const, bootstrap: [], localPort })),
  fc
    .tuple(fc.ipV4(), arbPort)
    .map(([host, port]) => ({ network: 'private' as const, bootstrap: [`${host}:${port}`], localPort: null }))
)
const arbShort: fc.Arbitrary<ShortCode> = fc
  .record({
    kind: fc.constant('short' as const),
    root: fc.uint8Array({ minLength: 12, maxLength: 12 }),
    secret: fc.uint8Array({ minLength: 14, maxLength: 14 }),
    trust: fc.constantFrom('mine' as const, 'guest' as const)
  })
  .chain((rest) => arbShortPlace.map((place) => ({ ...place, ...rest })))
const arbCode: fc.Arbitrary<InviteCode> = fc.oneof(arbLong, arbShort)
const ALPHABET = [...'ybndrfg8ejkmcpqxot1uwisza345h769']
const SAMPLE: LongCode = {
  kind: 'long',
  network: 'local',
  bootstrap: [],
  localPort: 29_737,
  root: Uint8Array.from({ length: 16 }, (_, i) => 200 + i),
  invite: Uint8Array.from({ length: 70 }, (_, i) => i),
  trust: 'guest'
}

const SHORT: ShortCode = {
  kind: 'short',
  network: 'private',
  bootstrap: ['192.168.255.254:49737'],
  localPort: null,
  root: SAMPLE.root.slice(0, 12),
  secret: SAMPLE.invite.slice(0, 14),
  trust: 'mine'
}

const reason = (text: string) => {
  const decoded = decodeInviteCode(text, hash)
  return decoded.ok ? 'ok' : decoded.reason
}

test('a code comes back as it was, in any case and with white space anywhere', (t: Assert) => {
  fc.assert(
    fc.property(arbCode, fc.nat(), (code, at) => {
      const text = encodeInviteCode(code, hash)
      const place = at % text.length
      const forms = [text, ` ${text}\n`, text.toUpperCase(), `${text.slice(0, place)}\r\n\t ${text.slice(place)}`]
      for (const form of forms) {
        const decoded = decodeInviteCode(form, hash)
        if (!decoded.ok) throw new Error(decoded.reason)
        const { ok: _, ...rest } = decoded
        t.alike(plain(rest), plain(code))
      }
    }),
    { numRuns: 100 }
  )
})

/** A code with its bytes as text, for comparisons. */
function plain(code: InviteCode): object {
  const entries = Object.entries(code).map(([key, value]) => [
    key,
    value instanceof Uint8Array ? bytesToText(value) : value
  ])
  return Object.fromEntries(entries) as object
}

test('one wrong, missing or doubled character is found', (t: Assert) => {
  for (const code of [SAMPLE, SHORT]) oneCharacter(t, code)
})

function oneCharacter(t: Assert, code: InviteCode): void {
  const text = encodeInviteCode(code, hash)
  for (let i = 0; i < text.length; i++) {
    const wrong = ALPHABET.filter((c) => c !== text[i]).slice(0, 5)
    for (const c of wrong) t.absent(decodeInviteCode(text.slice(0, i) + c + text.slice(i + 1), hash).ok, `${c} at ${i}`)
    t.absent(decodeInviteCode(text.slice(0, i) + text.slice(i + 1), hash).ok)
  }
  const ends = ALPHABET.filter((c) => decodeInviteCode(text.slice(0, -1) + c, hash).ok)
  t.alike(ends, [text.at(-1)], 'one last character only')
  t.absent(decodeInviteCode(`${text}y`, hash).ok)
  t.absent(decodeInviteCode(text.slice(0, 40), hash).ok)
}

test('no code with another character in any place is taken', async (t: Assert) => {
  await holds(
    t,
    fc.property(arbCode, fc.nat(), fc.integer({ min: 1, max: 31 }), (code, at, by) => {
      const text = encodeInviteCode(code, hash)
      const place = at % text.length
      const other = ALPHABET[(ALPHABET.indexOf(text[place] ?? '') + by) % 32]
      return !decodeInviteCode(text.slice(0, place) + other + text.slice(place + 1), hash).ok
    }),
    500
  )
})

test('the longest code that can be made can be read', (t: Assert) => {
  const bootstrap = Array.from({ length: 8 }, () => `${'a'.repeat(249)}:65535`)
  const text = encodeInviteCode({ ...SAMPLE, bootstrap, invite: new Uint8Array(512) }, hash)
  t.is(reason(text), 'ok')
})

test('any text gets an answer', (t: Assert) => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.uint8Array({ maxLength: 300 }).map(bytesToText)),
      (text) => !decodeInviteCode(text, hash).ok
    ),
    { numRuns: 1000 }
  )
  t.is(reason(''), 'it is empty')
  t.is(reason('lv02'), 'it has characters that no code has')
  t.is(reason('y'.repeat(1_000_000)), 'it has characters that no code has')
})

test('bytes with a right checksum are still checked', (t: Assert) => {
  const sealed = (body: number[]) => {
    const bytes = Uint8Array.from(body)
    return bytesToText(Uint8Array.from([...bytes, ...hash(bytes).subarray(0, 4)]))
  }
  const root = Array.from({ length: 16 }, () => 5)
  t.is(reason(sealed([2, 0, 0, 0, 0, ...root, 1, 0, 9])), 'ok')
  t.is(reason(sealed([2, 3, 0, 0, 0, ...root, 1, 0, 9])), 'it is malformed', 'an unknown network')
  t.is(reason(sealed([2, 0, 9, 0, 0, ...root, 1, 0, 9])), 'it is malformed', 'nine bootstrap nodes')
  t.is(reason(sealed([2, 0, 0, 0, 0, ...root, 2, 0, 9])), 'it is malformed', 'cut off')
  t.is(reason(sealed([2, 0, 0, 0, 0, 5, 5])), 'it is malformed', 'cut off in the fingerprint')
  t.is(reason(sealed([2, 0, 0, 0, 0, ...root, 1, 0, 9, 9])), 'it is malformed', 'more behind')
  t.is(reason(sealed([2, 0, 1, 3, 97, 58, 48, 0, 0, ...root, 1, 0, 9])), 'a bootstrap node is not host:port', 'port 0')
  fc.assert(
    fc.property(fc.array(fc.nat(255), { maxLength: 60 }), (rest) => typeof reason(sealed([2, ...rest])) === 'string'),
    { numRuns: 500 }
  )
})

test('a code of an earlier version, which does not say whose mesh it is, is refused and says what helps; so is one of a later version', (t: Assert) => {
  const old =
    'yrbyykmweayyyyenycnykbo8byrownacbw8y6rytnejtefesnhcb1go5doqth83yrrtngjbfrau1okjkfcsn4mtxgyaurc3wgw5dqqb38e7uaxj687yrno1detn4dpyizc'
  t.ok(reason(old).startsWith('an earlier version made it'), reason(old))
  const later = Uint8Array.of(10, 9, 9, 9)
  t.is(
    reason(bytesToText(Uint8Array.of(...later, ...hash(later).subarray(0, 4)))),
    'it is of a later version than this node reads'
  )
})

test('a part out of bounds makes no code', async (t: Assert) => {
  const wrong: Partial<LongCode>[] = [
    { bootstrap: ['no port'] },
    { bootstrap: ['host:70000'] },
    { bootstrap: Array.from({ length: 9 }, () => 'a:1') },
    { localPort: 0 },
    { localPort: 70_000 },
    { invite: new Uint8Array(0) },
    { invite: new Uint8Array(513) },
    { root: new Uint8Array(15) },
    { root: new Uint8Array(32) },
    { network: 'moon' as never }
  ]
  for (const change of wrong) {
    try {
      encodeInviteCode({ ...SAMPLE, ...change }, hash)
      t.fail(JSON.stringify(change))
    } catch (error) {
      t.is(error instanceof NodeError && error.code, 'CONFIG_INVALID')
    }
  }
})

test('a short code has at most 60 characters, and a part of it out of bounds makes no code', (t: Assert) => {
  fc.assert(fc.property(arbShort, (code) => encodeInviteCode(code, hash).length <= 60))
  t.is(encodeInviteCode(SHORT, hash).length, 60, 'the longest')
  const wrong: Partial<ShortCode>[] = [
    { bootstrap: [] },
    { bootstrap: ['10.0.0.1:1', '10.0.0.2:1'] },
    { bootstrap: ['node.example:49737'] },
    { bootstrap: ['[::1]:49737'] },
    { bootstrap: ['10.0.0.256:49737'] },
    { bootstrap: ['10.0.0.01:49737'] },
    { bootstrap: ['10.0.0.1:70000'] },
    { localPort: 1 },
    { network: 'public' },
    { network: 'local', bootstrap: [] },
    { root: new Uint8Array(16) },
    { secret: new Uint8Array(13) }
  ]
  for (const change of wrong)
    void t.exception(() => encodeInviteCode({ ...SHORT, ...change }, hash), /no invite code/, JSON.stringify(change))
})

test('a short code with a right checksum is still checked', (t: Assert) => {
  const sealed = (body: number[]) => {
    const bytes = Uint8Array.from(body)
    return bytesToText(Uint8Array.from([...bytes, ...hash(bytes).subarray(0, 4)]))
  }
  const end = Array.from({ length: 26 }, () => 5)
  t.is(reason(sealed([4, ...end])), 'ok')
  t.is(reason(sealed([4, ...end, 5])), 'it is malformed', 'more behind')
  t.is(reason(sealed([4, ...end.slice(1)])), 'it is malformed', 'cut off')
  t.is(reason(sealed([7, 10, 0, 0, 1, 0, 0, ...end])), 'a bootstrap node is not host:port', 'port 0')
  t.is(reason(sealed([9, 0, 0, ...end])), 'the local port is not 1..65535', 'port 0')
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 9 }),
      fc.array(fc.nat(255), { maxLength: 60 }),
      (version, rest) => typeof reason(sealed([version, ...rest])) === 'string'
    ),
    { numRuns: 500 }
  )
})

test('a code for the local network fits one line of a terminal twice', (t: Assert) => {
  t.ok(encodeInviteCode(SAMPLE, hash).length <= 160)
})
