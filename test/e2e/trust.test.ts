import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
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

/** Its work ends when it is canceled. */
const SLOW = AGENT('read')
  .replaceAll('read', 'slow')
  .replace('sideEffect: slow', 'sideEffect: read')
  .replace('[printf, done]', "[sleep, '600']")

async function agentsIn(dir: string): Promise<void> {
  await fs.mkdir(path.join(dir, 'agents'), { recursive: true, mode: 0o700 })
  for (const effect of ['read', 'write', 'exec'])
    await fs.writeFile(path.join(dir, 'agents', `${effect}.md`), AGENT(effect))
  await fs.writeFile(path.join(dir, 'agents', 'slow.md'), SLOW)
}

/** Exit code of a call of a capability with a side effect; a call that waits for an approval ends without it. */
async function callCode(by: LocalNode, effect: string, node: string): Promise<number | null> {
  const call = ['call', `${effect}@${node}`, `${effect}.run`, '{}']
  return (await by.cli([...call, '--timeout', '10s', '--allow-repeat'])).code
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

test('a swarm leaves a guest out of exec work and names the command that trusts it, which helps; the guest reads in swarms and cannot cancel them', async (t) => {
  const { a, b, g } = await threeHomes(t)
  await Promise.all(['read', 'exec'].flatMap((effect) => [b, g].map(({ name }) => untilAgent(a, `${effect}@${name}`))))
  const run = ['swarm', 'run', 'go', '--capability', 'exec.run']
  const left = 'exec@g  guest, may only ask; `a2a-node peers trust g mine`'
  const dry = await a.cli([...run, '--dry-run'])
  t.ok(dry.stdout.includes(left), dry.stdout + dry.stderr)
  const done = await a.cli(run)
  t.is(done.code, 0, done.stderr)
  t.ok(done.stdout.includes(left), done.stdout)
  const [last] = (await a.cli([...run, '--json'])).stdout.trim().split('\n').slice(-1)
  const { results } = JSON.parse(last ?? '{}') as { results: readonly { agent: string }[] }
  t.alike(
    results.map(({ agent }) => agent),
    ['exec@b']
  )
  const read = await a.cli(['swarm', 'run', 'go', '--capability', 'read.run', '--json'])
  t.ok(read.stdout.includes('read@g'))
  t.absent(read.stdout.includes('may only ask'))
  const alone = await a.cli([...run, '--label', 'none'])
  t.is(alone.code, 4, alone.stderr)
  await slowSwarm(t, { a, g })
  t.is((await a.cli(['peers', 'trust', 'g', 'mine'])).code, 0)
  const after = await a.cli([...run, '--dry-run'])
  t.ok(after.stdout.includes('exec@g'), after.stdout)
  t.absent(after.stdout.includes('left out'), after.stdout)
})

test('with guests in the mesh a new document is written by the machines of its person, doc access and the refusal say so, and the printed commands help', async (t) => {
  const { a, b, g } = await threeHomes(t)
  const made = await a.cli(['doc', 'set', 'notes', 'ours'])
  t.ok(made.stderr.includes('guests of yours read it only'), made.stderr)
  t.ok(made.stderr.includes(`a2a-node --home ${a.home} doc access notes --write everybody`), made.stderr)
  const shown = await a.cli(['doc', 'access', 'notes'])
  t.ok(/may write\s+b; its creator and the owner of the mesh/.test(shown.stdout), shown.stdout)
  await until(g.api, 'documents.list', {}, ({ documents }) => documents.some(({ name }) => name === 'notes'))
  const refused = await g.cli(['doc', 'set', 'notes', 'theirs'])
  t.is(refused.code, 5, refused.stderr)
  t.ok(refused.stderr.includes('try: a2a-node doc access notes --write b,g   # on a'), refused.stderr)
  await until(g.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'ours')
  // Two texts set at once are both kept: the second is set where the first is known.
  await until(b.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'ours')
  t.is((await b.cli(['doc', 'set', 'notes', 'ours too'])).code, 0, 'a machine of the same person writes')
  await until(a.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'ours too')
  await until(g.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'ours too')
  t.is((await a.cli(['doc', 'access', 'notes', '--write', 'b,g'])).code, 0)
  await untilTrue(
    async () => (await g.cli(['doc', 'set', 'notes', 'with permission'])).code === 0,
    'the guest may write'
  )
  await until(a.api, 'documents.read', { document: 'notes', type: 'text' }, ({ value }) => value === 'with permission')
  const again = await a.cli(['doc', 'access', 'notes', '--write', 'mine'])
  t.ok(/may write\s+b; its/.test(again.stdout), again.stdout)
  t.is((await a.cli(['doc', 'set', 'open', 'for all'])).code, 0)
  t.is((await a.cli(['doc', 'access', 'open', '--write', 'everybody'])).code, 0)
})

test('an invite of a guest and a change of trust name the documents that guests may write, with the command that ends it', async (t) => {
  const mesh = await localMesh(t)
  const a = await mesh.start('a')
  t.absent((await a.cli(['doc', 'set', 'notes', 'ours'])).stderr.includes('guests'), 'nobody is a guest yet')
  const access = await a.cli(['doc', 'access', 'notes'])
  t.ok(access.stdout.includes('guests included'), access.stdout)
  const step = 'try: a2a-node --home'
  const invited = await a.cli(['invite', '--guest'])
  t.ok(invited.stderr.includes('1 document: without an access list, so guests write too'), invited.stderr)
  t.ok(invited.stderr.includes(step) && invited.stderr.includes('doc access notes --write mine'), invited.stderr)
  t.absent((await a.cli(['invite', '--mine'])).stderr.includes('access list'))
  t.is((await a.cli(['doc', 'access', 'notes', '--write', 'mine'])).code, 0)
  t.absent((await a.cli(['invite', '--guest'])).stderr.includes('access list'), 'the printed command helps')
  const b = await mesh.start('b', { join: (await a.json<{ code: string }>(['invite', '--mine'])).code })
  await untilOnline(a, 1)
  const trusted = await a.cli(['peers', 'trust', 'b', 'guest'])
  t.ok(trusted.stderr.includes('1 document: access stays as it was for b'), trusted.stderr)
  await b.stop()
})

/** Nodes of three homes: the owner a, the second machine b of its person and the guest g; b and g have agents. */
async function threeHomes(t: Assert): Promise<Record<'a' | 'b' | 'g', LocalNode>> {
  const mesh = await localMesh(t)
  const dir = await mesh.dir()
  for (const name of ['b', 'g']) await agentsIn(path.join(dir, name))
  const a = await mesh.start('a')
  const code = async (kind: string): Promise<string> => (await a.json<{ code: string }>(['invite', kind])).code
  const b = await mesh.start('b', { home: path.join(dir, 'b'), join: await code('--mine') })
  const g = await mesh.start('g', { home: path.join(dir, 'g'), join: await code('--guest') })
  await Promise.all([untilOnline(a, 2), untilOnline(g, 2)])
  await regards(b, { a: 'mine', g: 'guest' })
  return { a, b, g }
}

/** A swarm of slow reads in which the guest takes part: it cannot cancel it, and its launcher can. */
async function slowSwarm(t: Assert, { a, g }: Record<'a' | 'g', LocalNode>): Promise<void> {
  const launched = await a.cli(['swarm', 'run', 'go', '--capability', 'slow.run', '--detach'])
  t.is(launched.code, 0, launched.stderr)
  const id = launched.stdout.trim()
  await untilTrue(
    async () => (await g.api.call('swarm.list', {})).swarms.some((one) => one.id === id),
    'the guest takes part'
  )
  const refused = await g.cli(['swarm', 'cancel', id])
  t.is(refused.code, 5, refused.stderr)
  t.ok(refused.stderr.includes('the swarm belongs to a, for which this node is a guest'), refused.stderr)
  t.ok(refused.stderr.includes(`try: a2a-node swarm cancel ${id}   # on a`), refused.stderr)
  t.is((await a.json<{ status: string }>(['swarm', 'show', id])).status, 'running')
  t.is((await a.cli(['swarm', 'cancel', id])).code, 0)
  t.is((await a.json<{ status: string }>(['swarm', 'show', id])).status, 'canceled')
}

/** Resolves when a node regards others so. */
async function regards(node: LocalNode, expected: Readonly<Record<string, 'mine' | 'guest'>>): Promise<void> {
  await until(node.api, 'peers.list', {}, ({ peers }) =>
    Object.entries(expected).every(([name, trust]) => peers.some((one) => one.name === name && one.trust === trust))
  )
}

async function auditOf(node: LocalNode): Promise<string> {
  return (await node.cli(['audit', '--since', '1h'])).stdout
}
