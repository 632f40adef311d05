import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { FIRST_RULES } from '../../src/adapters/storage/policy/policy-file.js'
import { type LocalNode, localMesh, until, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

/** An agent with a capability of each side effect. */
const AGENT = (effect: string): string => `---
name: ${effect}
description: Says done.
a2a:
  runtime: { type: command, command: [printf, done] }
  capabilities:
    - id: ${effect}.run
      description: Says done.
      sideEffect: ${effect}
---
`

async function agentsIn(dir: string): Promise<void> {
  await fs.mkdir(path.join(dir, 'agents'), { recursive: true, mode: 0o700 })
  for (const effect of ['read', 'write', 'exec'])
    await fs.writeFile(path.join(dir, 'agents', `${effect}.md`), AGENT(effect))
}

/** Exit code of a call of a capability with a side effect, with half a second for an approval. */
async function callCode(by: LocalNode, effect: string, node: string): Promise<number | null> {
  const call = ['call', `${effect}@${node}`, `${effect}.run`, '{}']
  return (await by.cli([...call, '--timeout', '500ms', '--allow-repeat'])).code
}

test('a guest reads at once, its calls that write or execute wait for the owner, and after peers trust it executes', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'a')
  await agentsIn(home)
  const a = await mesh.start('a', { home })
  const mine = await a.json<{ code: string; trust: string }>(['invite', '--mine'])
  const guest = await a.json<{ code: string; trust: string }>(['invite'])
  t.alike([mine.trust, guest.trust], ['mine', 'guest'])
  const b = await mesh.start('b', { join: mine.code })
  const g = await mesh.start('g', { join: guest.code })
  await untilOnline(a, 2)
  for (const effect of ['read', 'write', 'exec'])
    await Promise.all([b, g].map((node) => untilAgent(node, `${effect}@a`)))
  t.is(await callCode(b, 'exec', 'a'), 0, 'a machine of the same person executes')
  t.is(await callCode(g, 'read', 'a'), 0, 'a guest reads')
  for (const effect of ['write', 'exec']) {
    const waiting = g.cli(['call', `${effect}@a`, `${effect}.run`, '{}', '--timeout', '10m'])
    const { approvals } = await until(a.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
    t.ok(/policy\.yaml:\d+: ask \(guests-ask\)/.test(approvals[0]?.rule ?? ''), approvals[0]?.rule)
    await a.api.call('approvals.allow', { id: approvals[0]?.id ?? '' })
    t.is((await waiting).code, 0, effect)
  }
  const changed = await a.cli(['peers', 'trust', 'g', 'mine'])
  t.alike([changed.code, changed.stdout], [0, 'g is yours now\n'])
  t.is(await callCode(g, 'exec', 'a'), 0)
  // It counts on the other machines of the person, too; those of the former guest decide for themselves.
  await regards(b, { a: 'mine', g: 'mine' })
  await regards(g, { a: 'guest', b: 'guest' })
  await g.api.call('peers.trust', { peer: 'a', trust: 'mine' })
  await regards(g, { a: 'mine', b: 'mine' })
  await untilTrue(async () => (await auditOf(b)).includes('is a machine of the same person'), 'the change is on record')
})

test('invite, peers show and status name the trust of newcomer and inviter, and a restart keeps it', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const shown = await a.cli(['invite', '--mine', '--uses', '2'])
  t.ok(shown.stderr.includes('It joins as a machine of yours: both sides may use each other fully.'), shown.stderr)
  const { stderr } = await a.cli(['invite'])
  t.ok(stderr.includes('It joins as a guest'), 'without a word it is a guest')
  t.absent(stderr.includes('no rule of this node asks for guests'))
  const b = await mesh.start('b', { join: shown.stdout.trim() })
  await regards(b, { a: 'mine' })
  await regards(a, { b: 'mine' })
  t.ok((await b.cli(['peers', 'show', 'a'])).stdout.includes('mine: both sides may use each other fully'))
  t.ok((await b.cli(['status'])).stdout.includes('of the others 1 yours, 0 guests'))
  await until(a.api, 'peers.list', {}, ({ peers }) => peers.length === 1)
  await b.stop()
  const again = await mesh.start('b', { home: b.home })
  await regards(again, { a: 'mine' })
  const both = await a.cli(['invite', '--mine', '--guest'])
  t.is(both.code, 2, both.stderr)
  t.is((await a.cli(['peers', 'trust', 'b', 'friend'])).code, 2)
  t.is((await a.cli(['peers', 'trust', 'a', 'mine'])).code, 2, 'not itself')
})

test('a new home gets rules that ask for guests; a home that is in a mesh without rules gets none, and invite prints the rule to add', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  const file = path.join(a.home, 'policy.yaml')
  t.is(await fs.readFile(file, 'utf8'), FIRST_RULES)
  t.is((await a.json<{ rules: readonly { id: string }[] }>(['policy', 'show'])).rules[0]?.id, 'guests-ask')
  await a.stop()
  await Promise.all([file, path.join(a.home, 'policy.seen')].map((one) => fs.rm(one)))
  const again = await mesh.start('a', { home: a.home })
  t.alike((await again.json<{ rules: readonly unknown[] }>(['policy', 'show'])).rules, [])
  const { stderr } = await again.cli(['invite', '--guest'])
  const line = /Add to the rules in (.*):  (- .*)/.exec(stderr)
  t.ok(stderr.includes('no rule of this node asks for guests: they write and execute.'), stderr)
  t.is(line?.[1], file)
  await fs.writeFile(file, `rules:\n  ${line?.[2] ?? ''}\n`)
  await untilTrue(async () => (await again.api.call('policy.show', {})).rules.length === 1, 'the rule is read')
  t.absent((await again.cli(['invite', '--guest'])).stderr.includes('warning'), 'the printed rule helps')
  t.absent((await again.cli(['invite', '--mine'])).stderr.includes('warning'))
})

/** Resolves when a node regards others so. */
async function regards(node: LocalNode, expected: Readonly<Record<string, 'mine' | 'guest'>>): Promise<void> {
  await until(node.api, 'peers.list', {}, ({ peers }) =>
    Object.entries(expected).every(([name, trust]) => peers.some((one) => one.name === name && one.trust === trust))
  )
}

async function auditOf(node: LocalNode): Promise<string> {
  return (await node.cli(['audit', '--since', '1h'])).stdout
}
