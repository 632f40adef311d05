import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Assert } from 'brittle'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import { openAudit } from '../../../../src/adapters/storage/audit/audit-log.js'
import { verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import type { Audit, AuditEvent } from '../../../../src/ports/audit.js'
import { auditContract } from '../../../contracts/audit.js'
import { untilTrue } from '../../../support/nodes.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

async function open(t: Assert, dir: string, clock = new ManualClock()): Promise<Audit> {
  const audit = await openAudit({ dir, clock, onError: () => t.fail('the disk works') })
  t.teardown(() => audit.close())
  return audit
}

async function linesOf(dir: string, chain: string): Promise<(AuditEvent & { readonly count?: number })[]> {
  const text = await fs.readFile(path.join(dir, `${chain}.ndjson`), 'utf8')
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEvent)
}

auditContract('audit log', async (t) => {
  const dir = path.join(await tempDir(t), 'audit')
  const audit = await open(t, dir)
  const recorded = async (): Promise<AuditEvent[]> => {
    const [audited = [], changes = []] = await Promise.all(['audit', 'changes'].map((chain) => linesOf(dir, chain)))
    // The contract asks for three kinds, of which the second has a chain of its own.
    return [...audited.slice(0, 1), ...changes, ...audited.slice(1)]
  }
  return { audit, recorded, reopen: () => open(t, dir) }
})

test('each kind has its chain: events that peers can cause are apart from decisions of people and the mesh', async (t) => {
  const dir = await tempDir(t)
  const audit = await open(t, dir)
  const kinds = ['refusal', 'strike', 'control', 'cross-tier', 'membership', 'approval'] as const
  for (const kind of kinds) audit.append({ kind, code: kind })
  await audit.close()
  const where: Record<string, string[]> = {}
  for (const { name } of AUDIT_CHAINS) where[name] = (await linesOf(dir, name)).map(({ code }) => code)
  t.alike(where, {
    audit: ['refusal', 'strike', 'control'],
    exchanges: ['cross-tier'],
    changes: ['membership'],
    approvals: ['approval']
  })
})

test('no flood of refusals or exchanges pushes a revocation or an approval out, for any varied fields', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  const small = AUDIT_CHAINS.map((chain) => ({ ...chain, maxBytes: 20_000 }))
  const audit = await openAudit({ dir, clock, onError: () => t.fail('the disk works'), chains: small })
  t.teardown(() => audit.close())
  audit.append({ kind: 'membership', code: 'revoked', peer: 'bad' })
  audit.append({ kind: 'approval', code: 'allowed', peer: 'bad' })
  let told = 0
  for (let round = 0; round < 30; round++) {
    for (let i = 0; i < 2000; i++, told++) {
      const peer = `${round}-${i}`
      audit.append({
        kind: 'refusal',
        code: 'FORBIDDEN',
        rule: `r${i}`,
        peer,
        recipient: `x${i}`,
        reason: 'y'.repeat(200)
      })
      audit.append({
        kind: 'cross-tier',
        code: 'received',
        peer,
        sender: `a@${peer}`,
        recipient: 'b@me',
        messageType: 'request'
      })
    }
    clock.advance(60_000)
    await audit.flush()
  }
  await audit.close()
  const sizes = await Promise.all(
    (await fs.readdir(dir)).map(async (name) => (await fs.stat(path.join(dir, name))).size)
  )
  t.ok(sizes.reduce((sum, size) => sum + size, 0) < 4 * 4 * 400_000, 'bounded on disk')
  t.ok((await fs.readdir(dir)).includes('audit.3.ndjson'), 'the refusals filled their files')
  t.alike(
    (await linesOf(dir, 'changes')).map(({ code, peer }) => [code, peer]),
    [['revoked', 'bad']]
  )
  t.alike(
    (await linesOf(dir, 'approvals')).map(({ code, peer }) => [code, peer]),
    [['allowed', 'bad']]
  )
  t.is((await verifyAudit(dir)).ok, true)
})

test('steady exchanges across tiers are one line and few counts a minute for each kind of them, at ever longer intervals', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  const audit = await open(t, dir, clock)
  const exchange = {
    kind: 'cross-tier',
    code: 'sent',
    peer: 'p1',
    sourceTier: 'L0',
    targetTier: 'L2',
    messageType: 'request'
  } as const
  for (let second = 0; second < 60; second++) {
    for (let i = 0; i < 10; i++) audit.append({ ...exchange, sender: 'a@me', recipient: 'b@p1' })
    audit.append({ ...exchange, targetTier: 'L3', sender: 'a@me', recipient: 'c@p1' })
    clock.advance(1000)
  }
  await audit.close()
  const lines = await linesOf(dir, 'exchanges')
  const countsTo = (recipient: string): (number | undefined)[] =>
    lines.filter((one) => one.recipient === recipient && one.messageType === 'request').map((one) => one.count)
  const steady = [undefined, 9, 10, 20, 40, 80, 80, 80, 80, 80, 80, 40]
  t.alike(countsTo('b@p1'), steady)
  t.alike(
    countsTo('c@p1').reduce<number>((sum, count = 1) => sum + count, 0),
    60
  )
  t.ok(countsTo('c@p1').length <= steady.length)
  t.is(
    steady.reduce<number>((sum, count = 1) => sum + count, 0),
    600
  )
})

test('repeats before a kill are counted on record', { timeout: 120_000 }, async (t) => {
  const dir = await tempDir(t)
  const of = (file: string): string =>
    JSON.stringify(new URL(`../../../../src/adapters/${file}.js`, import.meta.url).href)
  const refusal = { kind: 'refusal', code: 'TIER_VIOLATION', peer: 'p1', rule: 'r' }
  const script = `
    import { openAudit } from ${of('storage/audit/audit-log')}
    import { AUDIT_CHAINS } from ${of('storage/audit/audit-chains')}
    import { systemClock } from ${of('system/system-clock')}
    // Windows that do not end meanwhile.
    const chains = AUDIT_CHAINS.map((chain) => ({ ...chain, windowMs: 3_600_000 }))
    const audit = await openAudit({ dir: ${JSON.stringify(dir)}, clock: systemClock(), onError: () => {}, chains })
    for (let i = 0; i < 6; i++) audit.append(${JSON.stringify(refusal)})
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  const count = async (): Promise<number> =>
    (await linesOf(dir, 'audit').catch(() => [])).reduce((sum, one) => sum + (one.count ?? 1), 0)
  await untilTrue(async () => (await count()) > 1, 'the count of the repeats')
  child.kill('SIGKILL')
  await ended
  t.is(await count(), 6)
  t.is((await verifyAudit(dir)).ok, true)
  await (await open(t, dir)).close()
  t.alike([await count(), (await verifyAudit(dir)).ok], [6, true])
})

test('exchanges of one peer between ever other agents are few lines a minute, and none goes uncounted', async (t) => {
  const dir = await tempDir(t)
  const clock = new ManualClock()
  const audit = await open(t, dir, clock)
  const exchange = {
    kind: 'cross-tier',
    code: 'sent',
    peer: 'p1',
    sourceTier: 'L0',
    targetTier: 'L2',
    messageType: 'request'
  } as const
  for (let i = 0; i < 600; i++) audit.append({ ...exchange, rule: 'r', sender: `a${i}@me`, recipient: `b${i}@p1` })
  await audit.close()
  const lines = await linesOf(dir, 'exchanges')
  t.is(
    lines.reduce((sum, { count = 1 }) => sum + count, 0),
    600
  )
  t.ok(lines.length <= 18, `${lines.length} lines`)
  t.alike(
    new Set(lines.map(({ peer, rule, messageType }) => `${peer} ${rule} ${messageType}`)),
    new Set(['p1 r request'])
  )
})

test('an event that came with its time has it in its line', async (t) => {
  const dir = await tempDir(t)
  const audit = await open(t, dir, new ManualClock(9000))
  audit.append({ kind: 'approval', code: 'allowed' }, 7000)
  audit.append({ kind: 'approval', code: 'denied' })
  await audit.close()
  const text = await fs.readFile(path.join(dir, 'approvals.ndjson'), 'utf8')
  t.alike(text.match(/"at":"[^"]*"/g), ['"at":"1970-01-01T00:00:07.000Z"', '"at":"1970-01-01T00:00:09.000Z"'])
})

test('a directory that takes no files is reported', async (t) => {
  const dir = path.join(await tempDir(t), 'file')
  await fs.writeFile(dir, '')
  await t.exception(openAudit({ dir, clock: new ManualClock(), onError: () => {} }))
})
