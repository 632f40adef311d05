import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { NodeError } from '../../../src/kit/errors.js'
import { bytesToText } from '../../../src/kit/ids.js'
import { decodeInviteCode, encodeInviteCode, INVITE_NETWORKS, type InviteCode } from '../../../src/domain/membership/invite-code.js'
import { hash } from '../../support/membership.js'

const arbHost = fc.oneof(
  fc.ipV4(),
  fc.ipV6().map((ip) => `[${ip}]`),
  fc.domain()
)
const arbAddress = fc.tuple(arbHost, fc.integer({ min: 1, max: 65_535 })).map(([host, port]) => `${host}:${port}`)
const arbCode: fc.Arbitrary<InviteCode> = fc.record({
  network: fc.constantFrom(...INVITE_NETWORKS),
  bootstrap: fc.array(arbAddress, { maxLength: 8 }),
  localPort: fc.option(fc.integer({ min: 1, max: 65_535 })),
  invite: fc.uint8Array({ minLength: 1, maxLength: 200 })
})
const SAMPLE: InviteCode = { network: 'local', bootstrap: [], localPort: 29_737, invite: Uint8Array.from({ length: 70 }, (_, i) => i) }

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
        const { ok: _, invite, ...rest } = decoded
        const { invite: bytes, ...asked } = code
        if (bytesToText(invite) !== bytesToText(bytes)) throw new Error('another invite')
        t.alike(rest, asked)
      }
    }),
    { numRuns: 100 }
  )
})

test('one wrong, missing or doubled character is found', (t: Assert) => {
  const text = encodeInviteCode(SAMPLE, hash)
  for (let i = 0; i < text.length; i++) {
    const wrong = [...'ybndrfg8ejkmcpqxot1uwisza345h769'].filter((c) => c !== text[i]).slice(0, 5)
    for (const c of wrong) t.absent(decodeInviteCode(text.slice(0, i) + c + text.slice(i + 1), hash).ok, `${c} at ${i}`)
    t.absent(decodeInviteCode(text.slice(0, i) + text.slice(i + 1), hash).ok)
  }
  const ends = [...'ybndrfg8ejkmcpqxot1uwisza345h769'].filter((c) => decodeInviteCode(text.slice(0, -1) + c, hash).ok)
  t.alike(ends, [text.at(-1)], 'one last character only')
  t.absent(decodeInviteCode(`${text}y`, hash).ok)
  t.absent(decodeInviteCode(text.slice(0, 40), hash).ok)
})

test('any text gets an answer', (t: Assert) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.uint8Array({ maxLength: 300 }).map(bytesToText)), (text) => !decodeInviteCode(text, hash).ok),
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
  t.is(reason(sealed([2, 0, 0, 0, 0, 1, 0, 9])), 'it is of another version')
  t.is(reason(sealed([1, 0, 0, 0, 0, 1, 0, 9])), 'ok')
  t.is(reason(sealed([1, 3, 0, 0, 0, 1, 0, 9])), 'it is malformed', 'an unknown network')
  t.is(reason(sealed([1, 0, 9, 0, 0, 1, 0, 9])), 'it is malformed', 'nine bootstrap nodes')
  t.is(reason(sealed([1, 0, 0, 0, 0, 2, 0, 9])), 'it is malformed', 'cut off')
  t.is(reason(sealed([1, 0, 0, 0, 0, 1, 0, 9, 9])), 'it is malformed', 'more behind')
  t.is(reason(sealed([1, 0, 1, 3, 97, 58, 48, 0, 0, 1, 0, 9])), 'a bootstrap node is not host:port', 'port 0')
  fc.assert(
    fc.property(fc.array(fc.nat(255), { maxLength: 60 }), (rest) => typeof reason(sealed([1, ...rest])) === 'string'),
    { numRuns: 500 }
  )
})

test('a part out of bounds makes no code', async (t: Assert) => {
  const wrong: Partial<InviteCode>[] = [
    { bootstrap: ['no port'] },
    { bootstrap: ['host:70000'] },
    { bootstrap: Array.from({ length: 9 }, () => 'a:1') },
    { localPort: 0 },
    { localPort: 70_000 },
    { invite: new Uint8Array(0) },
    { invite: new Uint8Array(513) },
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

test('a code for the local network fits one line of a terminal twice', (t: Assert) => {
  t.ok(encodeInviteCode(SAMPLE, hash).length <= 160)
})
