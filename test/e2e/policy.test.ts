import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { shortId } from '../../src/kit/ids.js'
import type { Reply } from '../../src/ports/node-api.js'
import type { ApprovalDetail, ApprovalInfo, PolicyInfo, PolicyTestResult } from '../../src/ports/policy-api.js'
import {
  type LocalMesh,
  type LocalNode,
  localMesh,
  until,
  untilAgent,
  untilOnline,
  untilTrue
} from '../support/nodes.js'

const ASK = `# what others may have done here
rules:
  # counting is asked about
  - capability: text.*
    decision: ask
`

/** A founder `a`, and a member `b` with a policy. */
async function pair(
  mesh: LocalMesh,
  policy: string,
  env: Record<string, string> = {},
  config = ''
): Promise<[LocalNode, LocalNode]> {
  const [homeOfA, home] = [path.join(await mesh.dir(), 'a'), path.join(await mesh.dir(), 'b')]
  for (const dir of [homeOfA, home]) {
    await fs.mkdir(dir, { recursive: true, mode: 0o700 })
    const text = config.replaceAll('<node>', path.basename(dir))
    if (config !== '') await fs.writeFile(path.join(dir, 'config.yaml'), text, { mode: 0o600 })
  }
  await fs.writeFile(path.join(home, 'policy.yaml'), policy)
  const a = await mesh.start('a', { home: homeOfA })
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code, home, env })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  await untilAgent(a, 'text@b')
  return [a, b]
}

const policyFile = (node: LocalNode): string => path.join(node.home, 'policy.yaml')

/** The id of what waits, as soon as something does. */
async function nextApproval(node: LocalNode): Promise<string> {
  const { approvals } = await until(node.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  return approvals[0]?.id ?? ''
}

const CALL = ['call', 'text@b', 'text.stats', '{"text":"one two"}']

test('a call waits for approval, says so, and completes once it is allowed', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await pair(mesh, ASK)
  const calling = a.cli([...CALL, '--timeout', '5s'])
  const id = await nextApproval(b)
  await until(a.api, 'tasks.list', {}, ({ tasks }) =>
    tasks.some((one) => one.state === 'submitted' && one.waitingFor === 'approval')
  )
  const {
    approvals: [waiting]
  } = await b.api.call('approvals.list', {})
  await untilTrue(() => Date.parse(waiting?.askedAt ?? '') + 6000 < Date.now(), 'the timeout of the caller passes')
  const { approvals } = await b.json<{ schema: string; approvals: ApprovalInfo[] }>(['approvals', 'ls'])
  t.alike(
    [approvals[0]?.id, approvals[0]?.from, approvals[0]?.to, approvals[0]?.rule],
    [id, 'operator@a', 'text@b', 'policy.yaml:4: ask']
  )
  t.ok((await b.cli(['approvals', 'ls'])).stdout.includes('{"text":"one two"}'))
  t.is(approvals[0]?.endsBy, 'node', 'the caller has more time than this node gives')
  const shown = await b.json<ApprovalDetail>(['approvals', 'show', id.slice(0, 10)])
  t.alike([shown.id, shown.whole.input, shown.whole.justification], [id, { text: 'one two' }, null])
  t.is((await b.cli(['approvals', 'show', 'app_nobody'])).code, 4)
  const allowed = await b.cli(['approvals', 'allow', id.slice(0, 10)])
  t.alike(
    [allowed.code, allowed.stdout],
    [0, `${id} is allowed: operator@a (${shortId(a.info.node.id)}) to text@b, text.stats\n`]
  )
  const { code, stdout, stderr } = await calling
  t.is(code, 0, stderr)
  t.is((JSON.parse(stdout) as { words: number }).words, 2)
  t.ok(stderr.includes('waiting for approval of text on b\n'), stderr)
  const none = { approvals: [], more: 0, error: null }
  t.alike(await b.json(['approvals', 'ls']), {
    schema: 'a2a-node/approvals@1',
    approvals: [],
    elsewhere: [],
    machines: [{ node: { id: a.info.node.id, name: 'a' }, ...none }]
  })
  await untilTrue(
    async () => (await auditText(b)).includes('"kind":"approval","code":"ALLOWED"'),
    'the approval is on record'
  )
})

async function auditText(node: LocalNode): Promise<string> {
  const all = await fs.readdir(path.join(node.home, 'audit'), { recursive: true, withFileTypes: true })
  // Other files are replaced while the node runs.
  const texts = all
    .filter(({ name }) => name.endsWith('.ndjson'))
    .map((one) => fs.readFile(path.join(one.parentPath, one.name), 'utf8'))
  return (await Promise.all(texts)).join('')
}

test('a call that nobody decides on in time exits 5 with APPROVAL_TIMEOUT', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await pair(mesh, ASK, { A2A_NODE_POLICY_APPROVAL_TIMEOUT_MS: '1000' })
  const { code, stderr } = await a.cli([...CALL, '--timeout', '5m'])
  t.is(code, 5)
  t.ok(stderr.includes('[APPROVAL_TIMEOUT]'), stderr)
})

test('a pending approval starts the program of policy.notify, also on another machine of the owner, and the asking machine lists its place', async (t) => {
  const mesh = await localMesh(t)
  const file = path.join(await mesh.dir(), 'notice-<node>')
  const script = `require('node:fs').writeFileSync(${JSON.stringify(file)}, require('node:fs').readFileSync(0))`
  const notify = JSON.stringify([process.execPath, '-e', script])
  const [a, b] = await pair(mesh, ASK, {}, `policy:\n  notify: ${notify}\n`)
  const calling = a.cli([...CALL, '--json'])
  const id = await nextApproval(b)
  for (const node of ['a', 'b']) {
    const read = (): Promise<string> => fs.readFile(file.replace('<node>', node), 'utf8').catch(() => '')
    await untilTrue(async () => (await read()).endsWith('\n'), `the program ran on ${node}`)
    t.is((JSON.parse(await read()) as ApprovalInfo).id, id)
  }
  await until(a.api, 'approvals.list', {}, ({ elsewhere = [] }) => elsewhere.length === 1)
  const { stdout } = await a.cli(['approvals', 'ls'])
  t.ok(stdout.startsWith(`on b (${shortId(b.info.node.id)}):\n`) && stdout.includes(id), stdout)
  t.is((await b.cli(['approvals', 'deny', id])).code, 0)
  t.is((await calling).code, 5)
  t.alike((await b.api.call('node.status', {})).problems, [])
})

test('a denied call exits 5 with POLICY_DENIED', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await pair(mesh, ASK)
  const calling = a.cli([...CALL, '--timeout', '5m', '--json'])
  const id = await nextApproval(b)
  t.is((await b.cli(['approvals', 'deny', id])).code, 0)
  const { code, stdout } = await calling
  t.is(code, 5)
  const reply = JSON.parse(stdout) as Reply
  t.alike([reply.outcome, reply.error?.code], ['FAILED', 'POLICY_DENIED'])
  t.is(reply.error?.message, 'refused by b: a person denied it (policy.yaml:4: ask)', 'and whose policy it was')
  t.is((await b.cli(['approvals', 'deny', id])).code, 4, 'there is nothing left to decide')
})

test('--remember leaves the file as it was but for one rule, and nobody is asked again, also after a restart', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await pair(mesh, ASK)
  const calling = a.cli([...CALL, '--timeout', '2m'])
  const id = await nextApproval(b)
  const other = a.cli([...CALL, '--timeout', '4m'])
  const { approvals } = await until(b.api, 'approvals.list', {}, (now) => now.approvals.length === 2)
  t.is(approvals[0]?.endsBy, 'node', 'the timeout of the caller is less than the approval')
  const { code, stdout } = await b.cli(['approvals', 'allow', id, '--remember'])
  t.is(code, 0)
  t.ok(stdout.includes(`: ${policyFile(b)}:4: { from: { node: ${a.info.node.id}, agent: operator`), stdout)
  t.ok(
    stdout.includes(
      `${approvals[1]?.id} is allowed by it as well: operator@a (${shortId(a.info.node.id)}) to text@b, text.stats\n`
    ),
    stdout
  )
  t.alike([(await calling).code, (await other).code], [0, 0])
  const lines = (await fs.readFile(policyFile(b), 'utf8')).split('\n')
  t.is(lines.toSpliced(3, 1).join('\n'), ASK)
  t.ok(lines[3]?.includes(`node: ${a.info.node.id}, agent: operator`), lines[3])
  t.is((await a.cli(CALL)).code, 0)
  await b.stop()
  const again = await mesh.start('b', { home: b.home })
  await Promise.all([untilOnline(a, 1), untilOnline(again, 1)])
  t.is((await a.cli(CALL)).code, 0)
})

test('an edited policy is in force at once; a broken one is a problem, and its last good version stays', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await pair(mesh, 'rules:\n  - { capability: text.stats, decision: deny }\n')
  const refused = await a.cli(CALL)
  t.is(refused.code, 5)
  t.ok(refused.stderr.includes('[POLICY_DENIED]'), refused.stderr)
  await fs.writeFile(policyFile(b), 'rules:\n  - { capability: text.stats, decison: allow }\n')
  const { problems } = await until(b.api, 'node.status', {}, (now) => now.problems.length > 0)
  t.is(problems[0]?.code, 'CONFIG_INVALID')
  t.ok(
    problems[0]?.message.includes(`${policyFile(b)}:2: `) && problems[0].message.includes('did you mean decision?'),
    problems[0]?.message
  )
  t.is((await a.cli(CALL)).code, 5)
  const shown = await b.json<PolicyInfo>(['policy', 'show'])
  t.alike([shown.rules.length, shown.rules[0]?.decision, shown.fault?.line], [1, 'deny', 2])
  await fs.rm(policyFile(b))
  await until(b.api, 'node.status', {}, (now) => now.problems.some((one) => one.message.includes('gone')))
  t.is((await a.cli(CALL)).code, 5, 'a file that is gone opens nothing')
  await fs.writeFile(policyFile(b), '')
  await until(b.api, 'node.status', {}, (now) => now.problems.length === 0)
  t.is((await a.cli(CALL)).code, 0)
})

test('a node does not start with a broken policy: exit 78, file and line', async (t) => {
  const mesh = await localMesh(t)
  const home = await mesh.dir()
  await fs.writeFile(path.join(home, 'policy.yaml'), 'rules:\n  - decision: maybe\n')
  const { code, stderr } = await mesh.run(['--home', home, 'start'])
  t.is(code, 78)
  t.ok(
    stderr.includes(
      `${path.join(home, 'policy.yaml')}:2: decision: takes allow, ask or deny; "maybe" does not fit  [CONFIG_INVALID]`
    ),
    stderr
  )
  await fs.writeFile(
    path.join(home, 'policy.yaml'),
    'rules:\n  - decision: Deny\n  - { decision: deny, from: { teir: L2 } }\n'
  )
  const several = await mesh.run(['--home', home, 'start'])
  t.is(several.code, 78)
  const [head, ...lines] = several.stderr.split('\n')
  t.is(head, `error: ${path.join(home, 'policy.yaml')}: 2 faults  [CONFIG_INVALID]`)
  t.ok(
    lines[0]?.startsWith(`  ${path.join(home, 'policy.yaml')}:2: decision: `) &&
      lines[0].endsWith('did you mean deny?'),
    lines[0]
  )
  t.ok(
    lines[1]?.startsWith(`  ${path.join(home, 'policy.yaml')}:3: from has no key "teir"; did you mean tier?`),
    lines[1]
  )
  await fs.rm(path.join(home, 'policy.yaml'))
  const gone = await mesh.run(['--home', home, 'start', '--detach'])
  t.is(gone.code, 78, 'nor when the file is gone')
  t.ok(gone.stderr.includes('is gone') && gone.stderr.includes(`touch ${path.join(home, 'policy.yaml')}`), gone.stderr)
})

test('policy test names the deciding rule with file and line, or the tier rule; a message without a row is denied', async (t) => {
  const mesh = await localMesh(t)
  const [, b] = await pair(mesh, ASK)
  const ask = async (...more: string[]): Promise<PolicyTestResult> => await b.json(['policy', 'test', ...more])
  const asked = await ask('--from', 'a', '--to', 'text@b')
  t.alike([asked.decision, asked.rule, asked.file, asked.line], ['ask', 'policy.yaml:4: ask', policyFile(b), 4])
  t.alike(
    [asked.from.agent, asked.to.agent, asked.capability, asked.sideEffect],
    ['operator@a', 'text@b', 'text.stats', 'none']
  )
  const denied = await ask('--from', 'L1', '--to', 'L3', '--capability', 'x.y')
  t.alike(
    [denied.decision, denied.code, denied.rule, denied.file],
    ['deny', 'TIER_VIOLATION', 'tier: L1 may open to L0, L1', null]
  )
  const text = await b.cli(['policy', 'test', '--from', 'a', '--to', 'text@b'])
  t.is(text.code, 0)
  t.ok(text.stdout.startsWith('ask  policy.yaml:4: ask\n') && text.stdout.includes(`${policyFile(b)}:4`), text.stdout)
  t.is((await b.cli(['policy', 'test', '--from', 'a'])).code, 2)
  const lacks = await b.cli(['policy', 'test', '--from', 'a', '--to', 'text', '--capability', 'text.stat'])
  t.is(lacks.code, 0)
  t.ok(
    lacks.stdout.includes('text@b has no text.stat, nor has any other') &&
      lacks.stdout.includes('did you mean text.stats?'),
    lacks.stdout
  )
  t.is((await b.cli(['policy', 'test', '--from', 'nobody', '--to', 'L1'])).code, 4)
})

test('policy test of one node prints the command to type on the other, which then answers for itself', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await pair(mesh, 'rules:\n  - { capability: text.*, decision: deny }\n')
  const { stdout, code } = await a.cli(['policy', 'test', '--from', 'text', '--to', 'text@b'])
  t.is(code, 0)
  t.ok(stdout.startsWith('allow  tier: '), stdout)
  const there = /^ {2}there +a2a-node .*?(policy test .*) {3}# on b$/m.exec(stdout)?.[1]
  t.is(there, 'policy test --from text@a --to text@b --capability text.stats')
  const answer = await b.json<PolicyTestResult>(there?.split(' ') ?? [])
  t.alike([answer.decision, answer.rule, answer.node], ['deny', 'policy.yaml:2: deny', 'b'])
  await a.json(['peers', 'revoke', 'b'])
  const gone = await a.cli(['policy', 'test', '--from', 'b', '--to', 'text'])
  t.alike([gone.code, gone.stderr.includes('b was put out of the mesh by a')], [5, true], gone.stderr)
})

test('outgoing messages never wait for approval: a later deny refuses them, and policy test and policy show say so', async (t) => {
  const mesh = await localMesh(t)
  const rules = '  - { to: { node: a, agent: text }, decision: ask }\n  - { decision: deny }\n'
  const [a, b] = await pair(mesh, `${ASK}${rules}`)
  await untilAgent(b, 'text@a')
  const refused = await b.cli(['call', 'text@a', 'text.stats', '{"text":"one two"}'])
  t.is(refused.code, 5)
  t.ok(refused.stderr.includes('[POLICY_DENIED]') && refused.stderr.includes('policy.yaml:7: deny'), refused.stderr)
  const { stdout } = await b.cli(['policy', 'test', '--from', 'b', '--to', 'text@a'])
  t.ok(stdout.startsWith('deny  policy.yaml:7: deny  [POLICY_DENIED]\n'), stdout)
  t.ok(
    stdout.includes(
      'the ask rule at line 4 is skipped here, since text@a is on another node; the deciding rule is policy.yaml:7: deny\n'
    ),
    stdout
  )
  const shown = await b.cli(['policy', 'show'])
  t.ok(/^warning {2}line 6: this rule asks nobody: it is for agents of a alone, /m.test(shown.stdout), shown.stdout)
  t.is(shown.stdout.match(/^warning/gm)?.length, 1, 'the rule of line 4 may ask about its own agents')
  const calling = a.cli([...CALL, '--timeout', '10m'])
  t.is(
    (await b.cli(['approvals', 'allow', await nextApproval(b)])).code,
    0,
    'an incoming message waits for approval, as before'
  )
  t.is((await calling).code, 0)
})

test('a request waits at the laptop of the owner, and the desktop of the owner decides it; the asking guest cannot', async (t) => {
  const mesh = await localMesh(t)
  const home = path.join(await mesh.dir(), 'laptop')
  await fs.mkdir(home, { recursive: true, mode: 0o700 })
  await fs.writeFile(path.join(home, 'policy.yaml'), ASK)
  const desktop = await mesh.start('desktop')
  const { code: own } = await desktop.api.call('invite.create', { trust: 'mine' })
  const laptop = await mesh.start('laptop', { join: own, home })
  const { code: guest } = await desktop.api.call('invite.create', { trust: 'guest' })
  const asker = await mesh.start('asker', { join: guest })
  await Promise.all([desktop, laptop, asker].map((node) => untilOnline(node, 2)))
  await untilAgent(asker, 'text@laptop')
  const call = (text: string) =>
    asker.cli(['call', 'text@laptop', 'text.stats', JSON.stringify({ text }), '--timeout', '1m'])
  const calling = call('one two')
  const id = await nextApproval(laptop)
  const refused = await asker.cli(['approvals', 'allow', id])
  t.is(refused.code, 4, refused.stderr)
  t.ok((await desktop.cli(['approvals', 'ls'])).stdout.startsWith(`on laptop (${shortId(laptop.info.node.id)}):\n`))
  t.ok((await desktop.cli(['approvals', 'show', id])).stdout.includes('"text": "one two"'))
  const remembered = await desktop.cli(['approvals', 'allow', id, '--remember'])
  t.is(remembered.code, 2)
  t.ok(remembered.stderr.includes(`try: a2a-node approvals allow ${id} --remember   # on laptop`), remembered.stderr)
  const allowed = await desktop.cli(['approvals', 'allow', id])
  t.alike([allowed.code, allowed.stderr], [0, ''])
  t.ok(allowed.stdout.startsWith(`${id} is allowed: operator@asker`), allowed.stdout)
  const { code, stdout } = await calling
  t.alike([code, (JSON.parse(stdout) as { words: number }).words], [0, 2])
  t.is((await desktop.cli(['approvals', 'allow', id])).code, 4, 'it is decided')
  await untilTrue(async () => {
    const text = await auditText(laptop)
    return text.includes(`allowed by operator of desktop (${shortId(desktop.info.node.id)})`)
  }, 'the laptop has both on record')
  await laptop.api.call('peers.trust', { peer: 'desktop', trust: 'guest' })
  const again = call('one')
  const second = await nextApproval(laptop)
  t.not((await desktop.cli(['approvals', 'allow', second])).code, 0, 'the desktop is a guest of the laptop now')
  t.is((await laptop.cli(['approvals', 'deny', second])).code, 0)
  t.is((await again).code, 5)
})
