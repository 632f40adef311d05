import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { guardedGateway, guardedText, Guardrails } from '../../../../src/adapters/a2a/server/guardrails.js'
import type { Gateway } from '../../../../src/ports/gateway.js'
import { failsWith } from '../../../support/fails.js'
import { holds } from '../../../support/holds.js'

const quoted = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
const rails = (maxLength: number, deny: readonly string[] = []): Guardrails =>
  new Guardrails({ input: { maxLength, deny }, output: { maxLength, deny } })

test('a text passes exactly when it is short enough and has none of the patterns', async (t: Assert) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '.', '(', '\\', '\n', 'é', '💡'), maxLength: 6 })
  const property = fc.property(
    word,
    fc.array(
      word.filter((one) => one !== ''),
      { maxLength: 4 }
    ),
    fc.integer({ min: 1, max: 8 }),
    (text, words, maxLength) => {
      const broken = rails(maxLength, words.map(quoted)).violation('input', text)
      if (text.length > maxLength)
        return broken?.rule === 'maxLength' && broken.length === text.length && broken.limit === maxLength
      const place = words.findIndex((one) => text.includes(one))
      return place === -1 ? broken === null : broken?.rule === 'deny' && broken.place === place
    }
  )
  await holds(t, property, 500)
})

test('every text in any JSON is checked, and nothing throws', async (t: Assert) => {
  const property = fc.property(fc.jsonValue({ maxDepth: 5 }), fc.jsonValue(), (value, other) => {
    const guarded = rails(1_000_000, ['needle'])
    const has = guardedText(value).includes('needle')
    const hidden = [[other, { a: [value, { deep: 'a needle!' }] }], { needle: value }, ['needle']]
    return (
      (guarded.violation('output', value) !== null) === has &&
      hidden.every((one) => guarded.violation('output', one)?.rule === 'deny')
    )
  })
  await holds(t, property, 300)
})

test('a pattern that would take for ever elsewhere takes time linear to the text', (t: Assert) => {
  const guarded = rails(1_000_000, ['^(a+)+$', '(?:a|aa)+b', '(.*)*x', '(a?){200}a{200}c'])
  const from = process.hrtime.bigint()
  for (const text of ['a'.repeat(20_000), `${'a'.repeat(20_000)}!`, 'ab'.repeat(10_000)])
    guarded.violation('input', text)
  const ms = Number(process.hrtime.bigint() - from) / 1e6
  t.ok(ms < 10_000, `${ms} ms; a backtracking matcher would not end`)
})

test('A2A messages are bound by the same rules, in every kind of part', async (t: Assert) => {
  const reply = { kind: 'message', message: { messageId: 'm', role: 'agent', parts: [] } } as const
  let sent = 0
  const gateway = { send: () => Promise.resolve(++sent > 0 ? reply : reply) } as unknown as Gateway
  const guarded = guardedGateway(gateway, rails(60, ['secret']))
  const by = { kind: 'token', name: 't', tier: 0, sandboxId: null, scopes: ['send'] } as const
  const send = (parts: readonly object[]) =>
    guarded.send(by, {
      message: { messageId: 'm', role: 'user', parts },
      agent: 'a',
      skill: null,
      mayAnswer: false,
      wait: false
    })
  for (const parts of [
    [{ text: 'a secret' }],
    [{ text: 'a' }, { text: 'secret' }],
    [{ data: { a: ['secret'] } }],
    [{ url: 'http://secret/' }],
    [{ text: '{"a":"s\\u0065cret"}' }],
    [{ text: 'x'.repeat(61) }]
  ])
    await failsWith(t, 'INVALID_INPUT', () => send(parts))
  t.is(sent, 0)
  t.is(await send([{ text: 'fine' }, { raw: 'c2VjcmV0'.repeat(20) }]), reply, 'bytes of a file are no text')
})
