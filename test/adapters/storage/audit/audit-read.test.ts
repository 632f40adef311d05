import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { readAudit } from '../../../../src/adapters/storage/audit/audit-read.js'
import type { Audit } from '../../../../src/ports/audit.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

async function log(t: Assert, maxBytes = 800): Promise<{ dir: string; clock: ManualClock; audit: Audit }> {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  const chains = AUDIT_CHAINS.map((chain) => ({ ...chain, maxBytes }))
  const audit = await openAudit({ dir, clock, onError: () => t.fail('the disk works'), chains })
  t.teardown(() => audit.close())
  return { dir, clock, audit }
}

async function codes(dir: string, since?: number): Promise<string[]> {
  const read: string[] = []
  for await (const line of readAudit(dir, since === undefined ? {} : { since }))
    read.push('damaged' in line ? 'damaged' : line.code)
  return read
}

const KINDS = ['refusal', 'membership', 'cross-tier', 'approval'] as const

test('the lines of all chains and files come in the order of their time', async (t) => {
  const { dir, clock, audit } = await log(t)
  const written: string[] = []
  for (let i = 0; i < 24; i++) {
    const code = `c${i}`
    audit.append({ kind: KINDS[(i * 7) % 4] ?? 'control', code, reason: 'x'.repeat(100) })
    written.push(code)
    await audit.flush()
    clock.advance(1000)
  }
  t.ok((await fs.readdir(dir)).includes('audit.1.ndjson'), 'in several files')
  t.alike(await codes(dir), written)
  t.alike(await codes(dir, clock.now() - 5000), written.slice(-5))
})

test('a line with a count stands where the first of its events came, though it is written after them', async (t) => {
  const { dir, clock, audit } = await log(t, 1_000_000)
  const event = { kind: 'refusal', peer: 'p' } as const
  audit.append({ ...event, code: 'often' })
  clock.advance(1000)
  audit.append({ ...event, code: 'often' })
  audit.append({ ...event, code: 'often' })
  for (const code of ['one', 'two']) {
    clock.advance(1000)
    audit.append({ ...event, code })
  }
  clock.advance(20_000)
  audit.append({ ...event, code: 'last' })
  await audit.close()
  t.alike(await codes(dir), ['often', 'often', 'one', 'two', 'last'])
})

test('a log that is not there has no lines', async (t) => {
  t.alike(await codes(path.join(await tempDir(t), 'none')), [])
})

test('a damaged line is reported as such and hides no other', async (t) => {
  const { dir, audit } = await log(t, 1_000_000)
  for (const code of ['one', 'two', 'three']) audit.append({ kind: 'control', code })
  await audit.close()
  const file = path.join(dir, 'audit.ndjson')
  await fs.writeFile(file, (await fs.readFile(file, 'utf8')).replace('"two"', '"TWO"'))
  t.alike(await codes(dir), ['one', 'damaged', 'three'])
})

test('a reader is not disturbed when files are begun and removed meanwhile', async (t) => {
  const { dir, audit } = await log(t)
  const write = async (from: number): Promise<void> => {
    for (let i = from; i < from + 10; i++) {
      audit.append({ kind: 'control', code: `c${i}`, reason: 'x'.repeat(200) })
      await audit.flush()
    }
  }
  await write(0)
  const seen: number[] = []
  for await (const line of readAudit(dir)) {
    if (seen.length === 0) await write(10)
    if (!('damaged' in line)) seen.push(line.seq)
  }
  t.ok(seen.length >= 2)
  t.alike(
    seen,
    seen.map((_, index) => (seen[0] ?? 0) + index),
    'without a gap'
  )
})
