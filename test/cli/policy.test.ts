import test from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { NodeError } from '../../src/kit/errors.js'
import type { ApprovalDetail, ApprovalInfo, PolicyInfo, PolicyTestResult } from '../../src/ports/policy-api.js'
import { PENDING_APPROVAL } from '../support/pending-approval.js'
import { fakeHome } from './command-line.js'

const APPROVAL: ApprovalInfo = { ...PENDING_APPROVAL, description: 'clean \u001b[31mup' }
const ANY = { node: null, nodeNames: null, agent: null, tier: null, sandbox: null }
const POLICY: PolicyInfo = {
  file: '/home/me/policy.yaml',
  rules: [
    {
      id: 'no-shell',
      name: 'no-shell',
      line: 3,
      from: { ...ANY, node: ['phone'], tier: ['L2', 'L3'] },
      to: ANY,
      capability: ['shell.*'],
      type: null,
      sideEffect: null,
      decision: 'deny'
    },
    {
      id: '#k2m4qa',
      line: 9,
      from: { ...ANY, sandbox: [null] },
      to: { ...ANY, node: ['y'.repeat(52), 'b'.repeat(52)], nodeNames: ['gpu', null] },
      capability: null,
      type: ['request'],
      sideEffect: ['exec'],
      decision: 'ask'
    }
  ],
  fault: { line: 4, reason: 'a rule has no key "decison"' },
  faults: [
    { line: 4, reason: 'a rule has no key "decison"' },
    { line: 7, reason: 'to: takes criteria' }
  ],
  moreFaults: 2,
  warnings: [
    { line: 9, name: 'pho\u001b[31mne', candidates: [], nearest: [], message: 'no node is called "pho\u001b[31mne"' }
  ],
  unasked: [{ line: 3, message: 'this rule asks nobody' }],
  approvalTimeoutMs: 300_000
}
const REPLY: Reply = {
  requestId: 'req_1',
  correlationId: 'thr_1',
  agent: 'text@gpu',
  taskId: 'task_1',
  outcome: 'COMPLETED',
  payload: 'done',
  error: null,
  latencyMs: 1
}

test('status shows how many messages wait for approval, and how to see them', async (t) => {
  const { run } = await fakeHome(t, { approvals: [APPROVAL] })
  const { stdout } = await run(['status'])
  t.ok(/waiting +1 for approval: a2a-node .*approvals ls/.test(stdout), stdout)
  t.is(
    (JSON.parse((await run(['status', '--json'])).stdout) as { approvals: { waiting: number } }).approvals.waiting,
    1
  )
})

test('the justification of a sender stands quoted behind the input, never in front of it', async (t) => {
  const forged = {
    ...APPROVAL,
    description: '{"command":"ls"}',
    justification: 'because  "}',
    input: '{"command":"rm"}'
  }
  const { run } = await fakeHome(t, { approvals: [forged] })
  const [head = '', row = ''] = (await run(['approvals', 'ls'])).stdout.split('\n')
  const at = head.indexOf('INPUT')
  t.ok(at > 0 && row.slice(at).startsWith('{"command":"rm"}  '), row)
  t.ok(
    row.slice(head.indexOf('SENDER SAYS')).startsWith('goal "{\\"command\\":\\"ls\\"}", justification "because'),
    row
  )
})

test('requests that wait at other nodes are listed with their place, time, task and the command for the owner', async (t) => {
  const waiting = {
    agent: 'shell@phone\u001b[31m',
    node: APPROVAL.fromNode,
    capability: 'shell.run',
    taskId: 'task_1',
    swarm: null,
    since: new Date().toISOString(),
    id: 'app_4k2m',
    until: new Date(Date.now() + 240_500).toISOString()
  }
  const older = { ...waiting, id: null, until: null, taskId: null, swarm: 'swarm_1' }
  const { run } = await fakeHome(t, { approvals: [], elsewhere: [waiting, older] })
  const [first = '', second = ''] = (await run(['approvals', 'ls'])).stdout.split('\n')
  t.ok(
    /^waiting for approval of shell@phone\S* \(.+\): shell\.run, asked just now, 4 min left, task_1;/.test(first),
    first
  )
  t.ok(first.endsWith('; its owner runs on phone: a2a-node approvals allow app_4k2m'), 'without the home of this node')
  t.ok(second.includes('swarm swarm_1') && second.endsWith(': a2a-node approvals ls'), second)
  t.absent(first.includes('\u001b'))
  const list = JSON.parse((await run(['approvals', 'ls', '--json'])).stdout) as { elsewhere: unknown[] }
  t.is(list.elsewhere.length, 2)
})

test('text cut from a row is marked outside of the quotes, and the command that shows all of it is printed', async (t) => {
  const long = {
    ...APPROVAL,
    input: `{"a":"${'x'.repeat(900)}…`,
    cut: ['input' as const],
    justification: `y${'z'.repeat(200)}`
  }
  const { run } = await fakeHome(t, { approvals: [APPROVAL, { ...long, id: 'app_long', endsBy: 'caller' }] })
  const lines = (await run(['approvals', 'ls'])).stdout.split('\n')
  t.absent(lines[1]?.includes('(cut)'), 'a complete record has no mark')
  t.ok(lines[2]?.includes(`{"a":"${'x'.repeat(74)}… (cut)  goal `), lines[2])
  t.ok(lines[2]?.endsWith(`justification "y${'z'.repeat(79)}"… (cut)`), lines[2])
  t.ok(/ {2}0 ms \(caller\) {2}/.test(lines[2] ?? ''), 'whose time is over first')
  t.ok(
    lines[3]?.startsWith('(cut): all of it is shown by a2a-node') && lines[3].endsWith('approvals show app_long'),
    lines[3]
  )
})

test('approvals show prints all of one, quoted and harmless, the input first; an unknown one is exit 4', async (t) => {
  const whole = {
    description: 'clean \u001b[31mup\n  input:\n{}',
    justification: 'w'.repeat(3000),
    input: { command: `ls \u202e${'x'.repeat(3000)}` }
  }
  const detail: ApprovalDetail = { ...APPROVAL, requestId: 'req_1', attempt: 1, copies: 2, whole }
  const { run } = await fakeHome(t, {
    calls: {
      'approvals.show': ({ id }) => {
        if (id === APPROVAL.id) return detail
        throw new NodeError('APPROVAL_NOT_FOUND', 'nothing that waits')
      }
    }
  })
  const { stdout, stderr, code } = await run(['approvals', 'show', APPROVAL.id])
  t.is(code, 0)
  const lines = stdout.split('\n')
  t.is(lines[0], `${APPROVAL.id}   waits for approval`)
  t.alike(lines.slice(1, 5), [
    '  from      operator@phone (k7f2...yyyy)   L2',
    '  agent     shell@laptop (x4m1...yyyy)',
    '  asks for  request, shell.run, side effect exec',
    '  request   req_1, attempt 1'
  ])
  const at = lines.indexOf('  input:')
  t.alike(lines.slice(at), [
    '  input:',
    '{',
    `  "command": "ls \\u202e${'x'.repeat(3000)}"`,
    '}',
    '  goal, as the sender gives it:',
    '"clean \\u001b[31mup\\n  input:\\n{}"',
    '  justification, as the sender gives it:',
    `"${'w'.repeat(3000)}"`,
    ''
  ])
  t.absent(stdout.includes('\u001b') || stdout.includes('\u202e'))
  t.ok(stderr.includes(`approvals allow ${APPROVAL.id}`) && stderr.includes(`approvals deny ${APPROVAL.id}`), stderr)
  t.alike(JSON.parse((await run(['approvals', 'show', APPROVAL.id, '--json'])).stdout), {
    schema: 'a2a-node/approval-detail@1',
    ...detail
  })
  t.is((await run(['approvals', 'show', 'app_none'])).code, 4)
})

test('a remembered decision prints the rule that was added, and the other approvals that it decided', async (t) => {
  const remembered = {
    file: '/home/me/policy.yaml',
    line: 4,
    id: '#k2m4qa',
    text: '{ from: { node: phone }, decision: allow }'
  }
  const alsoDecided = [{ ...APPROVAL, id: 'app_other', outcome: 'allowed' as const }]
  const result = { ...APPROVAL, remembered, alsoDecided }
  const { run } = await fakeHome(t, {
    calls: {
      'approvals.allow': () => result,
      'approvals.deny': () => ({ ...APPROVAL, remembered: null, alsoDecided: [] })
    }
  })
  const args = ['approvals', 'allow', APPROVAL.id, '--remember']
  t.alike((await run(args)).stdout.split('\n'), [
    'app_1234567890 is allowed: operator@phone (k7f2...yyyy) to shell@laptop, shell.run',
    'rule added, #k2m4qa: /home/me/policy.yaml:4: { from: { node: phone }, decision: allow }',
    'app_other is allowed by it as well: operator@phone (k7f2...yyyy) to shell@laptop, shell.run',
    ''
  ])
  t.alike(JSON.parse((await run([...args, '--json'])).stdout), {
    schema: 'a2a-node/approval@1',
    ...result,
    outcome: 'allowed'
  })
  const none = (await run(['approvals', 'deny', APPROVAL.id, '--remember'])).stdout
  t.ok(none.endsWith('no rule was written: none asks about it any more\n'), none)
})

test('approvals are listed with caller and request, harmless to show; a decision is printed', async (t) => {
  const { run, fake } = await fakeHome(t, { approvals: [APPROVAL] })
  const { stdout, code } = await run(['approvals', 'ls'])
  t.is(code, 0)
  for (const part of [
    'app_1234567890',
    'operator@phone (k7f2...yyyy, L2)',
    'shell@laptop',
    'shell.run',
    'exec',
    'policy.yaml:12: ask',
    '{"command":"ls"}'
  ])
    t.ok(stdout.includes(part), part)
  t.absent(stdout.includes('\u001b'))
  t.is(
    (await run(['approvals', 'allow', 'app_1234567890', '--remember'])).stdout,
    'app_1234567890 is allowed: operator@phone (k7f2...yyyy) to shell@laptop, shell.run\n'
  )
  t.alike(fake.seen.at(-1), { name: 'approvals.allow', params: { id: 'app_1234567890', remember: true } })
  const denied = await run(['approvals', 'deny', 'app_1234567890', '--json'])
  t.alike(JSON.parse(denied.stdout), { schema: 'a2a-node/approval@1', ...APPROVAL, outcome: 'denied' })
  t.is((await run(['approvals', 'deny', 'app_none'])).code, 4)
})

test('policy show prints the rules in order, and the faults of the file', async (t) => {
  const { run } = await fakeHome(t, { calls: { 'policy.show': () => POLICY } })
  const { stdout } = await run(['policy', 'show'])
  t.alike(stdout.split('\n').slice(0, 10), [
    '/home/me/policy.yaml',
    'broken  /home/me/policy.yaml:4: a rule has no key "decison"',
    'broken  /home/me/policy.yaml:7: to: takes criteria',
    'broken  and 2 more',
    'The rules below are those of the last good version.',
    'LINE  RULE      DECISION  FROM          TO                              CAPABILITY  EFFECT  TYPE',
    '3     no-shell  deny      @phone L2|L3  any                             shell.*     any     any',
    '9     #k2m4qa   ask       sandbox none  @gpu (yyyy...yyyy)|bbbb...bbbb  any         exec    request',
    'warning  line 3: this rule asks nobody',
    'warning  line 9: no node is called "pho[31mne"'
  ])
  t.alike(JSON.parse((await run(['policy', 'show', '--json'])).stdout), { schema: 'a2a-node/policy@1', ...POLICY })
})

test('policy test says what side effect it assumes of a tier', async (t) => {
  const result: PolicyTestResult = {
    decision: 'deny',
    code: 'POLICY_DENIED',
    rule: 'policy.yaml:2: deny',
    reason: null,
    file: '/home/me/policy.yaml',
    line: 2,
    from: { agent: null, tier: 'L2', sandboxId: null },
    to: { agent: null, tier: 'L1', sandboxId: null },
    type: 'request',
    capability: 'shell.run',
    sideEffect: 'exec',
    ruleId: 'no-shell',
    passedOver: null,
    assumed: { agent: null },
    missing: null,
    node: 'laptop',
    others: []
  }
  const args = ['policy', 'test', '--from', 'L2', '--to', 'L1', '--capability', 'shell.run']
  const unknown = await fakeHome(t, { calls: { 'policy.test': () => result } })
  const { stdout } = await unknown.run(args)
  t.ok(
    stdout.includes('side effect exec, as no agent of this node offers the capability; --side-effect names another'),
    stdout
  )
  const offered = await fakeHome(t, {
    calls: { 'policy.test': () => ({ ...result, sideEffect: 'read', assumed: { agent: 'shell@laptop' } }) }
  })
  t.ok((await offered.run(args)).stdout.includes('side effect read, as of shell@laptop;'))
  const given = await fakeHome(t, { calls: { 'policy.test': () => ({ ...result, assumed: null }) } })
  t.absent((await given.run(args)).stdout.includes('assumed'))
})

const TESTED: PolicyTestResult = {
  decision: 'allow',
  code: null,
  rule: 'policy.yaml:2: allow (mine)',
  ruleId: 'mine',
  reason: null,
  file: '/home/me/policy.yaml',
  line: 2,
  passedOver: null,
  from: { agent: 'operator@phone', tier: 'L2', sandboxId: null },
  to: { agent: 'text@laptop', tier: 'L0', sandboxId: null },
  type: 'request',
  capability: 'text.stat',
  sideEffect: 'exec',
  assumed: null,
  missing: { offeredBy: [], nearest: ['text.stats'] },
  node: 'laptop',
  others: [{ role: 'sender', node: 'phone', needsAllow: true }]
}

test('policy test says what the target lacks, and which other node decides as well and how to ask it', async (t) => {
  const args = ['policy', 'test', '--from', 'phone', '--to', 'text', '--capability', 'text.stat']
  const lacking = await fakeHome(t, { calls: { 'policy.test': () => TESTED } })
  const lines = (await lacking.run(args)).stdout.split('\n')
  t.alike(lines, [
    'allow  policy.yaml:2: allow (mine)',
    '  rule      /home/me/policy.yaml:2   mine',
    '  from      operator@phone   L2',
    '  to        text@laptop   L0',
    '  message   request, text.stat, side effect exec',
    '  missing   text@laptop has no text.stat, nor has any other agent in the mesh (an allowed message fails with CAPABILITY_NOT_FOUND); did you mean text.stats?',
    '  decided   by laptop, this node, for itself alone',
    '  also      phone, before it leaves: needs an allow rule of its own for it: the tier table refuses it',
    '  there     a2a-node policy test --from operator@phone --to text@laptop --capability text.stat   # on phone',
    ''
  ])
  t.alike(JSON.parse((await lacking.run([...args, '--json'])).stdout), { schema: 'a2a-node/policy-test@1', ...TESTED })
  const others = (list: PolicyTestResult['others']): PolicyTestResult => ({
    ...TESTED,
    missing: { offeredBy: ['x@tv'], nearest: [] },
    others: list
  })
  const away = { role: 'receiver', node: 'phone', needsAllow: false } as const
  const both = await fakeHome(t, { calls: { 'policy.test': () => others([{ ...away, role: 'sender' }, away]) } })
  const told = (await both.run(args)).stdout
  t.ok(told.includes('text@laptop has no text.stat; it is one of x@tv ('), told)
  t.ok(told.includes('by laptop, this node, which has neither end') && told.match(/^ {2}also/gm)?.length === 1, told)
  const anybody = await fakeHome(t, {
    calls: { 'policy.test': () => others([{ ...away, role: 'sender', node: null }]) }
  })
  t.ok(
    (await anybody.run(args)).stdout.includes(
      "  also      the sender's node, before it leaves: has to allow it by its own rules\n"
    )
  )
  const here = await fakeHome(t, { calls: { 'policy.test': () => others([]) } })
  t.ok((await here.run(args)).stdout.endsWith('  decided   by laptop, this node\n'))
})

test('policy test names the rule that can ask nobody, why, and the rule that decides instead', async (t) => {
  const rule = { rule: 'policy.yaml:2: ask', ruleId: '#k2m4qa', file: '/home/me/policy.yaml', line: 2 }
  const told = async (why: 'elsewhere' | 'proposal' | 'table'): Promise<string> => {
    const result: PolicyTestResult = {
      ...TESTED,
      missing: null,
      rule: 'tier: L1 may open to L0, L1',
      passedOver: { ...rule, why }
    }
    const { run } = await fakeHome(t, { calls: { 'policy.test': () => result } })
    return (await run(['policy', 'test', '--from', 'phone', '--to', 'text'])).stdout
  }
  const instead = '; the deciding rule is tier: L1 may open to L0, L1\n'
  const elsewhere = await told('elsewhere')
  t.ok(
    elsewhere.includes(
      `passed over  the ask rule at line 2 is skipped here, since text@laptop is on another node${instead}`
    ),
    elsewhere
  )
  const proposal = await told('proposal')
  t.ok(
    proposal.includes(`since a proposal runs nothing, and the requests that follow it are asked about${instead}`),
    proposal
  )
  const table = await told('table')
  t.ok(
    table.includes(`the ask rule at line 2 matches, but asks only about messages that the tier table allows${instead}`),
    table
  )
})

test('a call that waits for approval says of whom, on stderr, and prints its answer alone on stdout', async (t) => {
  const { run } = await fakeHome(t, {
    waiting: [
      { type: 'waiting', waitingFor: 'approval', agent: 'text@gpu', taskId: 'task_1' },
      { type: 'waiting', waitingFor: null, agent: 'text@gpu', taskId: 'task_1' }
    ],
    calls: { 'message.call': () => REPLY }
  })
  const { stdout, stderr, code } = await run(['call', 'text@gpu', 'text.stats', '{}'])
  t.is(code, 0)
  t.is(stdout, 'done\n')
  t.ok(stderr.startsWith('waiting for approval of text on gpu\n'), stderr)
})
