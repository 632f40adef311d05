import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { openAudit } from '../../../src/adapters/storage/audit/audit-log.js'
import { systemClock } from '../../../src/adapters/system/system-clock.js'
import type { Clock } from '../../../src/kit/clock.js'
import type { AuditEvent } from '../../../src/ports/audit.js'
import { ManualClock } from '../../support/manual-clock.js'
import { tempDir } from '../../support/tmp.js'
import { fakeHome, run } from '../command-line.js'
import { peer } from '../samples.js'

const GPU = peer('gpu-box').id
const EVENTS: readonly AuditEvent[] = [
  { kind: 'membership', code: 'revoked', peer: GPU, by: 'y'.repeat(52), reason: '"gpu-box": lost', ref: 'r1' },
  {
    kind: 'refusal',
    code: 'TIER_VIOLATION',
    rule: 'tier: L1 may open to L0, L1',
    reason: 'evil\u001b[31m\nname',
    peer: GPU,
    sender: `text@${GPU}`,
    recipient: `host@${'y'.repeat(52)}`,
    messageType: 'request'
  },
  { kind: 'refusal', code: 'FORBIDDEN', rule: 'origin', peer: 'n'.repeat(52) }
]

async function write(
  home: string,
  events: readonly AuditEvent[] = EVENTS,
  clock: Clock = systemClock()
): Promise<string> {
  const dir = path.join(home, 'audit')
  const audit = await openAudit({
    dir,
    clock,
    onError: (error) => {
      throw error
    }
  })
  for (const event of events) audit.append(event)
  await audit.close()
  return dir
}

function linesOf(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

test('audit shows what is on record with the names of nodes, safe to show', async (t: Assert) => {
  const { run: cli, home } = await fakeHome(t, { peers: [peer('gpu-box')] })
  await write(home)
  const ran = await cli(['audit'])
  t.is(ran.code, 0)
  const lineWith = (text: string): string => ran.stdout.split('\n').find((line) => line.includes(text)) ?? ''
  const [revoked, refused, foreign] = [lineWith('revoked'), lineWith('TIER_VIOLATION'), lineWith('FORBIDDEN')]
  t.ok(
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}membership {2}revoked +gpu-box {2}by laptop {2}"gpu-box": lost$/.test(revoked),
    revoked
  )
  t.ok(refused.includes('text@gpu-box -> host@laptop  request  [tier: L1 may open to L0, L1]'), refused)
  t.ok(foreign.includes('nnnn...nnnn'), foreign)
  t.absent(ran.stdout.includes('\u001b'))
})

test('audit --json is one typed object a line', async (t: Assert) => {
  const { run: cli, home } = await fakeHome(t, { peers: [peer('gpu-box')] })
  await write(home)
  const lines = linesOf((await cli(['audit', '--json'])).stdout)
  const [line, refusal] = ['revoked', 'TIER_VIOLATION'].map((code) => lines.find((one) => one['code'] === code))
  const { at, hash, ...rest } = line ?? {}
  t.ok(!Number.isNaN(Date.parse(String(at))) && /^[0-9a-f]{64}$/.test(String(hash)))
  t.alike(rest, {
    schema: 'a2a-node/audit-line@1',
    kind: 'membership',
    code: 'revoked',
    count: 1,
    several: [],
    rule: null,
    reason: '"gpu-box": lost',
    peer: { id: GPU, name: 'gpu-box' },
    by: { id: 'y'.repeat(52), name: 'laptop' },
    sender: null,
    recipient: null,
    hops: [],
    messageType: null,
    sourceTier: null,
    targetTier: null,
    chain: 'changes',
    seq: 1
  })
  t.is(refusal?.['sender'], 'text@gpu-box')
})

test('lines of different messages name each, those of a flood say that they stand for several, and --peer finds both', async (t: Assert) => {
  const { run: cli, home } = await fakeHome(t, { peers: [peer('gpu-box')] })
  const towards = {
    kind: 'refusal',
    code: 'TIER_VIOLATION',
    peer: GPU,
    sender: `a@${'y'.repeat(52)}`,
    messageType: 'request'
  } as const
  const tiers = { sourceTier: 'L1', targetTier: 'L3' } as const
  await write(
    home,
    [...Array(40).keys()].map((i) => ({ ...towards, ...tiers, recipient: `r${i}@${GPU}` }))
  )
  const { stdout } = await cli(['audit', '--peer', 'gpu-box'])
  t.absent(stdout.includes('*'))
  t.ok(stdout.includes('gpu-box  a@laptop -> r1@gpu-box  request  L1 to L3'), stdout)
  t.ok(/gpu-box {2}a@laptop -> several {2}request {2}L1 to L3 {2}\(23 times\)/.test(stdout), stdout)
  const lines = linesOf((await cli(['audit', '--peer', 'gpu-box', '--json'])).stdout)
  t.alike([lines.at(-1)?.['recipient'], lines.at(-1)?.['several']], [null, ['recipient']])
})

test('--peer takes the name or id of a member, the key of a stranger; --since a time', async (t: Assert) => {
  const { run: cli, home } = await fakeHome(t, { peers: [peer('gpu-box')] })
  // Of 2023.
  await write(home, [{ kind: 'control', code: 'old' }], new ManualClock())
  await write(home)
  const count = async (...args: string[]): Promise<number> =>
    linesOf((await cli(['audit', '--json', ...args])).stdout).length
  t.is(await count('--peer', 'gpu-box'), 2)
  t.is(await count('--peer', GPU.slice(0, 6)), 2)
  t.is(await count('--peer', 'n'.repeat(52)), 1)
  t.is(await count('--peer', 'laptop'), 2)
  t.is(await count(), 4)
  t.is(await count('--since', '1h'), 3)
  t.is((await cli(['audit', '--peer', 'nobody'])).code, 4)
  t.is((await cli(['audit', '--since', 'yesterday'])).code, 2)
  t.is((await cli(['audit', '--verify', '--peer', 'gpu-box'])).code, 2)
})

test('audit and audit --verify work without a running node', async (t: Assert) => {
  const home = await tempDir(t)
  const none = await run(['audit', '--verify', '--json'], { home })
  t.alike(
    [none.code, JSON.parse(none.stdout)],
    [0, { schema: 'a2a-node/audit-check@1', ok: true, entries: 0, broken: [], brokenAt: null }]
  )
  t.is((await run(['audit'], { home })).stderr, 'nothing is on record\n')
  await write(home)
  t.is(linesOf((await run(['audit', '--json'], { home })).stdout).length, 3)
  t.is(linesOf((await run(['audit', '--json', '--peer', GPU.slice(0, 5)], { home })).stdout).length, 2)
  t.is((await run(['audit', '--peer', 'GPU box'], { home })).code, 2)
  const named = await run(['audit', '--peer', 'laptop'], { home })
  t.is(named.code, 4, 'a name is not taken for an id of which nothing is on record')
  t.ok(named.stderr.includes('names are known only while the node runs'), named.stderr)
  t.is(
    (await run(['audit', '--peer', 'p'.repeat(52)], { home })).stderr,
    'nothing is on record\n',
    'of a whole id that may be so'
  )
  const text = await run(['audit', '--verify'], { home })
  t.alike([text.code, text.stdout], [0, 'ok  3 lines, no link of the chains is broken\n'])
})

test('a home that is not there has no log that holds: no node is there', async (t: Assert) => {
  const home = path.join(await tempDir(t), 'mistyped')
  for (const args of [['audit', '--verify'], ['audit']]) {
    const ran = await run([...args, '--home', home])
    t.alike([ran.code, ran.stdout], [3, ''])
    t.ok(
      ran.stderr.startsWith(
        `error: there is no node in ${home}  [NODE_NOT_RUNNING]\n  try: a2a-node --home ${home} start\n`
      ),
      ran.stderr
    )
  }
})

test("files and directories in each other's places are reported as damage, with a next step", async (t: Assert) => {
  const [file, directory] = [await tempDir(t), await tempDir(t)]
  await fs.writeFile(path.join(file, 'audit'), '')
  for (const [home, message] of [
    [file, `${file}/audit is no directory: the audit log belongs there`],
    [directory, `a directory in ${directory}/audit has the name of a file of the audit log`]
  ] as const) {
    for (const name of home === file ? [''] : ['audit.head', 'exchanges.ndjson']) {
      if (name !== '') await fs.mkdir(path.join(home, 'audit', name), { recursive: true })
      for (const args of name === 'audit.head' ? [['audit', '--verify']] : [['audit', '--verify'], ['audit']]) {
        const ran = await run(args, { home })
        t.alike([ran.code, ran.stdout], [78, ''])
        t.is(ran.stderr, `error: ${message}  [STORE_DAMAGED]\n  try: ls -la ${home}/audit\n  try: a2a-node doctor\n`)
      }
      if (name !== '') await t.exception(write(home), /has the name of a file of the audit log/)
      if (name !== '') await fs.rm(path.join(home, 'audit', name), { recursive: true })
    }
  }
})

test('a chain whose head is gone says so, and not that a line is missing that never was', async (t: Assert) => {
  const home = await tempDir(t)
  const dir = await write(home)
  await fs.rm(path.join(dir, 'changes.head'))
  const { code, stdout, stderr } = await run(['audit', '--verify'], { home })
  t.is(code, 1)
  const [first] = stdout.split('\n')
  const place = `${dir}/changes.ndjson:2: changes.head, the head of this chain, was gone or unreadable`
  t.is(first, `broken  ${place}: whether line 2 of the chain changes and later ones are missing cannot be told`)
  t.ok(stderr.includes('  try: less -N +2 '), stderr)
})

test('a log that somebody changed is broken: exit code 1, the line and its chain', async (t: Assert) => {
  const home = await tempDir(t)
  const dir = await write(home)
  const file = path.join(dir, 'audit.ndjson')
  await fs.writeFile(file, (await fs.readFile(file, 'utf8')).replace('FORBIDDEN', 'forbidden'))
  const json = await run(['audit', '--verify', '--json'], { home })
  const look = `less -N +2 ${file}   # shows its files; compare them with a backup`
  const away = `mv ${dir} ${dir}.broken; rm -f ${dir}.seen`
  const next = [look, `a2a-node stop; ${away}; a2a-node start   # begin a new log, once you know why`]
  const broken = [{ chain: 'audit', line: 2, fault: 'changed', file, fileLine: 2 }]
  t.alike(
    [json.code, JSON.parse(json.stdout)],
    [1, { schema: 'a2a-node/audit-check@1', ok: false, entries: 2, broken, brokenAt: 2, next }]
  )
  const text = await run(['audit', '--verify'], { home })
  t.alike(
    [text.code, text.stdout],
    [1, `broken  ${file}:2: line 2 of the chain audit was changed\n2 lines in all chains hold\n`]
  )
  t.is(text.stderr, next.map((one) => `  try: ${one}\n`).join(''))
  const typed = await run(['audit', '--verify', '--home', home])
  t.ok(
    typed.stderr.includes(`: a2a-node --home ${home} stop; mv `) &&
      typed.stderr.includes(`; a2a-node --home ${home} start `),
    typed.stderr
  )
  const listed = await run(['audit'], { home })
  t.is(listed.stdout.split('\n').length, 3)
  t.ok(listed.stderr.startsWith('1 line cannot be read: a2a-node audit --verify'))
  const other = path.join(dir, 'changes.ndjson')
  await fs.writeFile(other, (await fs.readFile(other, 'utf8')).replace('lost', 'list'))
  const both = await run(['audit', '--verify'], { home })
  t.alike(
    [both.code, both.stdout.split('\n').map((line) => /chain (\w+)/.exec(line)?.[1])],
    [1, ['audit', 'changes', undefined, undefined]]
  )
})

test('a beginning that fits several ids is refused and names them, members and strangers, with and without a node', async (t: Assert) => {
  const stranger = `${GPU.slice(0, 4)}${'k'.repeat(48)}`
  const { run: cli, home } = await fakeHome(t, { peers: [peer('gpu-box')] })
  await write(home, [...EVENTS, { kind: 'refusal', code: 'FORBIDDEN', rule: 'gate', peer: stranger }])
  const running = await cli(['audit', '--peer', GPU.slice(0, 4)])
  t.alike([running.code, running.stdout], [4, ''])
  t.ok(
    running.stderr.includes('[AMBIGUOUS_NAME]') &&
      running.stderr.includes(`  one of: ${GPU} (gpu-box)\n  one of: ${stranger}\n`),
    running.stderr
  )
  t.ok(
    (await cli(['audit', '--peer', stranger.slice(0, 8)])).stdout.includes('[gate]'),
    'a longer one is enough, also of a stranger'
  )
  await fs.rm(path.join(home, 'run'), { recursive: true })
  const stopped = await run(['audit', '--peer', GPU.slice(0, 4)], { home })
  t.alike([stopped.code, stopped.stdout], [4, ''])
  t.ok(
    stopped.stderr.includes(`  one of: ${GPU}\n`) && stopped.stderr.includes(`  one of: ${stranger}\n`),
    stopped.stderr
  )
})
