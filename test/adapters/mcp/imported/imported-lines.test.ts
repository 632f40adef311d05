import fc from 'fast-check'
import test, { type Assert } from 'brittle'
import { ImportedLines } from '../../../../src/adapters/mcp/imported/imported-lines.js'
import { holds } from '../../../support/holds.js'

interface Told {
  readonly lines: string[]
  readonly tooLong: (number | null)[]
  endless: number
}

function reader(maxBytes: number): {
  readonly told: Told
  push(text: string): void
  pushBytes(bytes: Uint8Array): void
} {
  const told: Told = { lines: [], tooLong: [], endless: 0 }
  const lines = new ImportedLines(maxBytes, {
    line: (text) => told.lines.push(text),
    tooLong: (id) => told.tooLong.push(id),
    endless: () => told.endless++
  })
  return { told, push: (text) => lines.push(Buffer.from(text)), pushBytes: (bytes) => lines.push(bytes) }
}

test('lines come out as they were written, however the bytes are cut', async (t: Assert) => {
  const line = fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.replace(/[\r\n]/g, '').trim())
  await holds(
    t,
    fc.property(
      fc.array(line, { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 50 }),
      (lines, cuts) => {
        const { told, pushBytes } = reader(10_000)
        const bytes = Buffer.from(lines.map((one) => `${one}\n`).join(''))
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length] ?? 1
          pushBytes(bytes.subarray(at, at + size))
          at += size
        }
        return (
          JSON.stringify(told.lines) ===
          JSON.stringify(lines.map((one) => Buffer.from(one).toString('utf8')).filter((one) => one !== ''))
        )
      }
    )
  )
})

test('a line that is too long is dropped and named by the request it answers; the next one is read', (t: Assert) => {
  const { told, push } = reader(1000)
  const text = 'x'.repeat(1500)
  push(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"${text}"}]}}\n`)
  push(`{"result":{"text":"${text}"},"jsonrpc":"2.0","id":8}\n`)
  push(`{"result":{"id":99,"text":"${text}"},"x":1}\n{"ok":true}\n`)
  t.alike(told.tooLong, [7, 8, null])
  t.alike(told.lines, ['{"ok":true}'])
})

test('a line without an end is reported once, and none of it is kept', (t: Assert) => {
  const { told, push } = reader(1000)
  for (let i = 0; i < 100; i++) push('y'.repeat(1000))
  t.is(told.endless, 1)
  push('\n{"ok":true}\n')
  t.alike(told.lines, [], 'nothing more is read')
})
