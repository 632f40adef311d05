import fs from 'node:fs/promises'
import path from 'node:path'
import { setImmediate } from 'node:timers/promises'
import test from 'brittle'
import type { Assert } from 'brittle'
import { AUDIT_CHAINS } from '../../../../src/adapters/storage/audit/audit-chains.js'
import type { AuditChain } from '../../../../src/adapters/storage/audit/audit-chains.js'
import { openAuditFile } from '../../../../src/adapters/storage/audit/audit-file.js'
import { verifyAudit } from '../../../../src/adapters/storage/audit/audit-verify.js'
import type { NodeError } from '../../../../src/kit/errors.js'
import type { Audit, AuditEvent } from '../../../../src/ports/audit.js'
import { auditContract } from '../../../contracts/audit.js'
import { ManualClock } from '../../../support/manual-clock.js'
import { tempDir } from '../../../support/tmp.js'

interface Line extends AuditEvent {
  readonly seq: number
  readonly at: string
  readonly count?: number
  readonly prev: string
  readonly hash: string
}

interface Opened {
  readonly dir: string
  readonly clock: ManualClock
  readonly audit: Audit
  readonly errors: NodeError[]
}

const refusal: AuditEvent = { kind: 'refusal', code: 'TIER_VIOLATION', peer: 'p1', sender: 'a@p1', recipient: 'b@me' }

/** Opens the chain of refusals as it ships, or another. */
async function open(
  t: Assert,
  { dir: given, ...changes }: Partial<AuditChain> & { readonly dir?: string } = {}
): Promise<Opened> {
  const dir = given ?? path.join(await tempDir(t), 'audit')
  const clock = new ManualClock()
  const errors: NodeError[] = []
  const chain = { ...chainNamed(changes.name ?? 'audit'), ...changes }
  const opening = { chains: [chain.name], isLost: false }
  const audit = await openAuditFile({ dir, chain, clock, onError: (error) => errors.push(error), opening })
  t.teardown(() => audit.close())
  return { dir, clock, audit, errors }
}

function chainNamed(name: string): AuditChain {
  const chain = AUDIT_CHAINS.find((one) => one.name === name)
  if (chain === undefined) throw new Error(`no chain ${name}`)
  return chain
}

async function linesOf(dir: string, file = 'audit.ndjson'): Promise<Line[]> {
  const text = await fs.readFile(path.join(dir, file), 'utf8')
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
}

auditContract('audit file', async (t) => {
  const { dir, audit } = await open(t)
  return { audit, recorded: () => linesOf(dir), reopen: async () => (await open(t, { dir })).audit }
})

test('a line has its number, its time, the event, the hash before it and its own', async (t) => {
  const { dir, audit } = await open(t)
  audit.append({ ...refusal, rule: 'tier: L1 may open to L0, L1', reason: 'L1 to L2', messageType: 'request' })
  await audit.flush()
  const [line] = await linesOf(dir)
  t.alike(Object.keys(line ?? {}), [
    'seq',
    'at',
    'kind',
    'code',
    'rule',
    'reason',
    'peer',
    'sender',
    'recipient',
    'messageType',
    'prev',
    'hash'
  ])
  t.is(line?.seq, 1)
  t.is(line?.at, '2023-11-14T22:13:20.000Z')
  t.is(line?.prev, '0'.repeat(64))
  t.ok(/^[0-9a-f]{64}$/.test(line?.hash ?? ''))
  t.alike(JSON.parse(await fs.readFile(path.join(dir, 'audit.head'), 'utf8')), {
    seq: 1,
    hash: line?.hash,
    first: { seq: 1, prev: '0'.repeat(64) },
    chains: ['audit']
  })
})

test('directory and files are for this user alone', async (t) => {
  const { dir, audit } = await open(t)
  audit.append(refusal)
  await audit.flush()
  t.is(((await fs.stat(dir)).mode & 0o777).toString(8), '700')
  for (const name of await fs.readdir(dir))
    t.is(((await fs.stat(path.join(dir, name))).mode & 0o777).toString(8), '600', name)
})

test('texts of others are made safe and cut, members nobody asked for are left out', async (t) => {
  const { dir, audit } = await open(t)
  const event = { ...refusal, reason: `\u001b[31m${'x'.repeat(5000)}\n`, sender: 'a\u202e@p', extra: 'unasked' }
  audit.append(event)
  await audit.flush()
  const [line] = await linesOf(dir)
  t.is(line?.reason?.length, 256)
  t.is(line?.sender, 'a@p')
  t.absent(Object.hasOwn(line ?? {}, 'extra'))
})

test('lines are written within 50 ms without anybody asking, together', async (t) => {
  const { dir, clock, audit } = await open(t)
  audit.append({ kind: 'control', code: 'one' })
  audit.append({ kind: 'control', code: 'two' })
  t.is((await fs.readFile(path.join(dir, 'audit.ndjson'), 'utf8')).length, 0)
  clock.advance(50)
  // The write goes on by itself; closing only waits for it.
  await audit.close()
  t.alike(
    (await linesOf(dir)).map(({ code }) => code),
    ['one', 'two']
  )
})

test('equal refusals of one peer within 10 s are the first line, one with a count soon, and one for later ones', async (t) => {
  const { dir, clock, audit } = await open(t)
  for (let i = 0; i < 500; i++) audit.append({ ...refusal, reason: `try ${i}` })
  audit.append({ ...refusal, rule: 'another' })
  audit.append({ ...refusal, peer: 'p2' })
  audit.append({ ...refusal, recipient: 'c@me' })
  clock.advance(9000)
  audit.append(refusal)
  clock.advance(1000)
  await audit.close()
  const lines = await linesOf(dir)
  const began = '2023-11-14T22:13:20.000Z'
  t.alike(
    lines.map(({ peer, rule, recipient, sender, reason, count, at }) => [
      peer,
      rule,
      recipient,
      sender,
      reason,
      count,
      at
    ]),
    [
      ['p1', undefined, 'b@me', 'a@p1', 'try 0', undefined, began],
      ['p1', 'another', 'b@me', 'a@p1', undefined, undefined, began],
      ['p2', undefined, 'b@me', 'a@p1', undefined, undefined, began],
      ['p1', undefined, 'c@me', 'a@p1', undefined, undefined, began],
      ['p1', undefined, 'b@me', 'a@p1', undefined, 499, began],
      ['p1', undefined, 'b@me', 'a@p1', undefined, undefined, '2023-11-14T22:13:29.000Z']
    ]
  )
  t.ok((await verifyAudit(dir)).ok)
})

test('an event with the reference of a line that is there already is not written again, also after a restart', async (t) => {
  const { dir, audit } = await open(t, { name: 'changes' })
  const change = { kind: 'membership', code: 'revoked', peer: 'p1', ref: 'r1' } as const
  audit.append(change)
  audit.append(change)
  audit.append({ ...change, ref: 'r2' })
  await audit.close()
  const next = await open(t, { dir, name: 'changes' })
  next.audit.append(change)
  next.audit.append({ ...change, ref: 'r3' })
  await next.audit.close()
  t.alike(
    (await linesOf(dir, 'changes.ndjson')).map(({ ref }) => ref),
    ['r1', 'r2', 'r3']
  )
})

test('a repeat after its window is a line of its own again', async (t) => {
  const { dir, clock, audit } = await open(t)
  audit.append(refusal)
  clock.advance(10_000)
  audit.append(refusal)
  clock.advance(10_000)
  await audit.close()
  t.alike(
    (await linesOf(dir)).map(({ count }) => count),
    [undefined, undefined]
  )
})

test('however the refusals vary, ten seconds leave few lines, and none goes uncounted', async (t) => {
  const { dir, audit } = await open(t)
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 5000; i++) audit.append({ ...refusal, peer: `p${i}` })
  }
  await audit.close()
  const lines = await linesOf(dir)
  t.is(
    lines.reduce((sum, { count = 1 }) => sum + count, 0),
    10_000
  )
  t.ok(lines.length <= 2 * (256 + 1), `${lines.length} lines`)
  const rest = lines.find(({ count = 1 }) => count > 2)
  t.alike(
    [rest?.code, rest?.peer, rest?.sender],
    ['TIER_VIOLATION', undefined, 'a@p1'],
    'the rest is reported by its common fields'
  )
  t.alike((rest as { several?: string[] } | undefined)?.several, ['peer'], 'and by the differing ones')
  t.ok((await verifyAudit(dir)).ok)
})

test('every line of an exchange across tiers names its rule, also in a flood', async (t) => {
  const { dir, audit } = await open(t, { name: 'exchanges' })
  const exchange = {
    kind: 'cross-tier',
    code: 'received',
    sourceTier: 'L0',
    targetTier: 'L1',
    messageType: 'request'
  } as const
  for (let i = 0; i < 3000; i++)
    audit.append({ ...exchange, peer: `p${i % 600}`, rule: i % 2 === 0 ? 'policy.yaml:2: allow' : 'tier: ...' })
  for (let i = 0; i < 10; i++) audit.append({ ...exchange, peer: 'p1', rule: 'policy.yaml:9: allow' })
  await audit.close()
  const lines = await linesOf(dir, 'exchanges.ndjson')
  t.alike(
    lines.filter(({ rule }) => rule === undefined),
    []
  )
  const counted = new Map<string, number>()
  for (const { rule = '', count = 1 } of lines) counted.set(rule, (counted.get(rule) ?? 0) + count)
  t.alike(
    [...counted],
    [
      ['policy.yaml:2: allow', 1500],
      ['tier: ...', 1500],
      ['policy.yaml:9: allow', 10]
    ]
  )
  t.ok(lines.length <= 2 * (256 + 3), `${lines.length} lines`)
})

test('the chain goes on over restarts', async (t) => {
  const first = await open(t)
  first.audit.append(refusal)
  await first.audit.close()
  const second = await open(t, { dir: first.dir })
  second.audit.append({ kind: 'membership', code: 'revoked' })
  await second.audit.close()
  const [one, two] = await linesOf(first.dir)
  t.is(two?.seq, 2)
  t.is(two?.prev, one?.hash)
  t.alike(await verifyAudit(first.dir), { ok: true, entries: 2, broken: [] })
})

test('at its size a new file is begun, a bounded number is kept, and the chain is valid over all', async (t) => {
  const { dir, audit } = await open(t, { maxBytes: 2000, keepFiles: 3 })
  for (let i = 0; i < 60; i++) {
    audit.append({ ...refusal, peer: `r${i}` })
    await audit.flush()
  }
  t.alike((await fs.readdir(dir)).sort(), ['audit.1.ndjson', 'audit.2.ndjson', 'audit.head', 'audit.ndjson'])
  const oldest = (await linesOf(dir, 'audit.2.ndjson'))[0]
  t.ok((oldest?.seq ?? 0) > 1)
  const check = await verifyAudit(dir)
  t.is(check.ok, true)
  t.is(check.entries, 60 - (oldest?.seq ?? 0) + 1)
  await audit.close()
  const again = await open(t, { dir, maxBytes: 2000, keepFiles: 3 })
  again.audit.append({ kind: 'control', code: 'restarted' })
  await again.audit.close()
  t.is((await verifyAudit(dir)).ok, true)
})

test('lines go to a file that was emptied or removed under a running node, without zeros, and its chain is broken', async (t) => {
  for (const change of [(file: string) => fs.truncate(file), (file: string) => fs.rm(file)]) {
    const { dir, clock, audit, errors } = await open(t)
    audit.append(refusal)
    await audit.flush()
    const file = path.join(dir, 'audit.ndjson')
    await change(file)
    audit.append({ ...refusal, peer: 'p2' })
    clock.advance(100)
    await audit.flush().catch(() => {})
    t.alike(
      errors.map(({ code, message }) => [code, message.startsWith(`${file} was removed, replaced or cut short`)]),
      [['STORE_DAMAGED', true]]
    )
    await audit.flush()
    t.ok((await fs.readFile(file, 'utf8')).startsWith('{"seq":2,'))
    t.is((await verifyAudit(dir)).broken.length, 1)
  }
})

test('lines of a failed flush are written without a further event, also after a second failure', async (t) => {
  const dir = path.join(await tempDir(t), 'audit')
  const clock = new ManualClock()
  let report: (state: string) => void = () => {}
  const chain = chainNamed('changes')
  const audit = await openAuditFile({
    dir,
    chain,
    clock,
    onError: () => report('failed'),
    onRecovered: () => report('works'),
    opening: { chains: [chain.name], isLost: false }
  })
  t.teardown(() => audit.close())
  const blocked = path.join(dir, 'changes.head.tmp')
  await fs.mkdir(blocked)
  audit.append({ kind: 'membership', code: 'during' })
  await t.exception(audit.flush())
  for (const expected of ['failed', 'works']) {
    if (expected === 'works') await fs.rmdir(blocked)
    const reported = new Promise<string>((resolve) => (report = resolve))
    clock.advance(1000)
    t.is(await reported, expected)
    // The next try is planned after the report of the last one.
    await setImmediate()
  }
  t.alike(
    (await linesOf(dir, 'changes.ndjson')).map(({ code }) => code),
    ['during']
  )
})

test('the last lines of a node are on disk though their file was removed before', async (t) => {
  const { dir, audit } = await open(t)
  await fs.rm(path.join(dir, 'audit.ndjson'))
  audit.append(refusal)
  await audit.close()
  t.alike(
    (await linesOf(dir)).map(({ code }) => code),
    ['TIER_VIOLATION']
  )
})

test('a line that a crash cut is removed and the cut put on record', async (t) => {
  const { dir, audit } = await open(t)
  audit.append(refusal)
  await audit.close()
  await fs.appendFile(path.join(dir, 'audit.ndjson'), '{"seq":2,"at":"20')
  const next = await open(t, { dir })
  next.audit.append({ kind: 'control', code: 'after' })
  await next.audit.close()
  const lines = await linesOf(dir)
  t.alike(
    lines.map(({ seq, code }) => [seq, code]),
    [
      [1, 'TIER_VIOLATION'],
      [2, 'CHAIN_NOTE'],
      [3, 'after']
    ]
  )
  t.ok(lines[1]?.reason?.includes('17 bytes'))
  t.is((await verifyAudit(dir)).ok, true)
})

test('whole lines that a crash left behind the stored head are kept', async (t) => {
  const { dir, audit } = await open(t)
  audit.append(refusal)
  await audit.flush()
  const head = await fs.readFile(path.join(dir, 'audit.head'))
  audit.append({ kind: 'control', code: 'not in the head' })
  await audit.close()
  await fs.writeFile(path.join(dir, 'audit.head'), head)
  t.is((await verifyAudit(dir)).ok, true)
  const next = await open(t, { dir })
  next.audit.append({ kind: 'control', code: 'after' })
  await next.audit.close()
  t.alike(
    (await linesOf(dir)).map(({ code }) => code),
    ['TIER_VIOLATION', 'not in the head', 'after']
  )
  t.is((await verifyAudit(dir)).ok, true)
})

test('lines that were taken away stay missing, also after the next start', async (t) => {
  const { dir, audit } = await open(t)
  for (const code of ['one', 'two', 'three']) audit.append({ kind: 'control', code })
  await audit.close()
  const text = await fs.readFile(path.join(dir, 'audit.ndjson'), 'utf8')
  await fs.writeFile(path.join(dir, 'audit.ndjson'), `${text.split('\n')[0]}\n`)
  const place = { file: path.join(dir, 'audit.ndjson'), fileLine: 2 }
  t.alike(await verifyAudit(dir), {
    ok: false,
    entries: 1,
    broken: [{ chain: 'audit', line: 2, fault: 'missing', ...place }]
  })
  const next = await open(t, { dir })
  next.audit.append({ kind: 'control', code: 'after' })
  await next.audit.close()
  const lines = await linesOf(dir)
  t.alike(
    lines.map(({ seq, code }) => [seq, code]),
    [
      [1, 'one'],
      [4, 'CHAIN_NOTE'],
      [5, 'after']
    ]
  )
  t.is(lines[1]?.reason, 'the lines 2 to 3 were missing')
  t.alike(await verifyAudit(dir), {
    ok: false,
    entries: 1,
    broken: [{ chain: 'audit', line: 2, fault: 'misplaced', ...place }]
  })
})

test('each note on a fault is a line with all of it, for any number of notes', async (t) => {
  const { dir, audit } = await open(t)
  for (const code of ['one', 'two', 'three']) audit.append({ kind: 'control', code })
  await audit.close()
  const [first = ''] = (await fs.readFile(path.join(dir, 'audit.ndjson'), 'utf8')).split('\n')
  await fs.writeFile(path.join(dir, 'audit.ndjson'), `${first}\n{"seq":2,"a`)
  await (await open(t, { dir })).audit.close()
  t.alike(
    (await linesOf(dir)).map(({ code, reason, count }) => [code, reason, count]),
    [
      ['one', undefined, undefined],
      ['CHAIN_NOTE', 'an unfinished line of 11 bytes was removed', undefined],
      ['CHAIN_NOTE', 'the lines 2 to 3 were missing', undefined]
    ]
  )
})

test('a disk that refuses is reported, nothing is thrown, and the lines are written when it accepts them again', async (t) => {
  const { dir, clock, audit, errors } = await open(t)
  audit.append({ kind: 'control', code: 'before' })
  await audit.flush()
  const blocked = path.join(dir, 'audit.head.tmp')
  await fs.mkdir(blocked)
  audit.append({ kind: 'control', code: 'during' })
  await t.exception(audit.flush())
  t.is(errors.length, 1)
  await fs.rmdir(blocked).catch(() => {})
  clock.advance(1000)
  await audit.close()
  t.alike(
    (await linesOf(dir)).map(({ seq, code }) => [seq, code]),
    [
      [1, 'before'],
      [2, 'during']
    ]
  )
  t.is((await verifyAudit(dir)).ok, true)
})

test('when the disk does not keep up, lines are dropped, counted, and their number put on record', async (t) => {
  const { dir, audit } = await open(t, { repeats: null })
  for (let i = 0; i < 12_000; i++) audit.append({ ...refusal, recipient: `r${i}` })
  await audit.close()
  const lines = await linesOf(dir)
  const note = lines.find(({ code }) => code === 'CHAIN_NOTE')
  t.is(note?.count, 2000)
  t.is(lines.length, 10_001)
  t.is((await verifyAudit(dir)).ok, true)
})
