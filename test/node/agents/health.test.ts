import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { CHECK_EVERY_MS, CHECK_TIMEOUT_MS, MAX_CHECKS } from '../../../src/node/agents/health.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import type { HealthFinding, HostedAgent } from '../../../src/ports/agent-runtime.js'
import type { Principal } from '../../../src/ports/node-api.js'
import { prometheusLines } from '../../../src/kit/prometheus.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { World } from '../../support/fake-node.js'
import { holds } from '../../support/holds.js'
import { parsePrometheus } from '../../support/prometheus.js'

const ALICE: Principal = {
  kind: 'token',
  name: 'token alice',
  id: 'tok_a',
  tier: 0,
  sandboxId: null,
  scopes: ['read', 'send']
}
const SKILL = 'shared.do'
const WELL: HealthFinding = { state: 'healthy', reason: null }
const ILL: HealthFinding = { state: 'unhealthy', reason: 'no program' }

/** An agent that is found to be what a test says. */
class Patient extends FakeAgent implements HostedAgent {
  finding: HealthFinding | Error | null = WELL
  asked = 0
  static mostAtOnce = 0
  static now = 0

  async check(): Promise<HealthFinding> {
    this.asked++
    Patient.mostAtOnce = Math.max(Patient.mostAtOnce, ++Patient.now)
    await Promise.resolve()
    Patient.now--
    if (this.finding === null) return await new Promise(() => {})
    if (this.finding instanceof Error) throw this.finding
    return this.finding
  }
}

const patient = (id: string): Patient =>
  new Patient(agentDefinition(id, { capabilities: [capability(SKILL)] }), () => ({ ok: true, result: 'done' }))

test('an agent that cannot work is shown as that, is a problem of its node and is not turned to while another one can', async (t: Assert) => {
  const [one, two] = [patient('one'), patient('two')]
  const world = new World(t)
  one.finding = ILL
  const owner = await world.owner({ agents: [one, two] })
  await world.settle()
  const gateway = new TaskService(owner.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  let said = 0
  const ask = async (): Promise<void> => {
    const message = { messageId: `m${++said}`, role: 'user' as const, parts: [{ text: 'x' }] }
    await gateway.send(ALICE, { message, agent: null, skill: SKILL, mayAnswer: false, wait: false })
    await world.settle()
  }
  for (let i = 0; i < 3; i++) await ask()
  t.alike([one.tasks.length, two.tasks.length], [0, 3])
  const shown = await owner.api().call('agents.show', { agent: 'one' })
  t.alike([shown.health?.state, shown.health?.reason], ['unhealthy', 'no program'])
  const status = await owner.api().call('node.status', {})
  t.alike(status.agents.ready, ['two'], 'a broken agent is not called ready')
  const problems = status.problems.filter(({ code }) => code === 'AGENT_UNHEALTHY')
  t.alike(problems, [
    { code: 'AGENT_UNHEALTHY', message: 'agent one cannot work: no program', next: 'a2a-node agents show one' }
  ])
  two.finding = ILL
  await world.pass(CHECK_EVERY_MS)
  await ask()
  t.is(one.tasks.length, 1, 'rather one that may not work than none')
  one.finding = WELL
  await world.pass(CHECK_EVERY_MS)
  await ask()
  t.is(one.tasks.length, 2)
  t.is((await owner.api().call('node.status', {})).problems.filter(({ code }) => code === 'AGENT_UNHEALTHY').length, 1)
})

test('metrics of agents are what happened: how each was found, its runs, failures and times, reloads and faults of files', async (t: Assert) => {
  const [one, two] = [
    patient('one'),
    new Patient(agentDefinition('two'), () => ({ ok: false, code: 'TASK_FAILED', message: 'no' }))
  ]
  const world = new World(t)
  two.finding = ILL
  const owner = await world.owner({ agents: [one, two] })
  await world.settle()
  for (const [agent, skill] of [
    ['one', SKILL],
    ['one', SKILL],
    ['two', 'two.do']
  ] as const)
    await owner
      .api()
      .call('message.call', { agent, capability: skill, input: {} })
      .catch(() => null)
  owner.source.set([patient('one'), two], [{ file: '/a.md', line: null, reason: 'broken' }])
  await world.settle()
  const { samples } = parsePrometheus(prometheusLines(await owner.api().call('node.metrics', {})).join('\n'))
  const at = (name: string): number | undefined => samples.get(`a2a_node_${name}`)
  t.alike(
    [
      'agent_run_seconds_count{agent="one"}',
      'agent_run_seconds_bucket{agent="one",le="+Inf"}',
      'agent_failures_total{agent="two"}'
    ].map(at),
    [2, 2, 1]
  )
  t.alike(['agent_health{agent="two",state="unhealthy"}', 'agent_health{agent="two",state="healthy"}'].map(at), [1, 0])
  t.alike(['agent_reloads_total', 'agent_file_faults_total'].map(at), [1, 1])
})

test('an agent without a health answer is unwell, and then cannot work; an error in a check stops no other', async (t: Assert) => {
  const [silent, broken] = [patient('silent'), patient('broken')]
  silent.finding = null
  broken.finding = new Error('the check broke')
  const world = new World(t)
  const owner = await world.owner({ agents: [silent, broken] })
  const states = (): (string | undefined)[] => ['silent', 'broken'].map((id) => owner.core.agents.health(id)?.state)
  await world.pass(CHECK_TIMEOUT_MS)
  t.alike(states(), ['degraded', 'degraded'])
  await world.pass(CHECK_EVERY_MS)
  await world.pass(CHECK_TIMEOUT_MS)
  t.alike(states(), ['unhealthy', 'unhealthy'])
})

test('the reported health of each agent is the latest finding, and the time since when, for any findings', async (t: Assert) => {
  const finding = fc.constantFrom<HealthFinding>(WELL, ILL, { state: 'degraded', reason: 'slow' })
  const property = fc.asyncProperty(
    fc.array(finding, { minLength: 1, maxLength: 5 }),
    fc.integer({ min: 1, max: 9 }),
    async (findings, count) => {
      Patient.mostAtOnce = 0
      const agents = Array.from({ length: count }, (_, i) => patient(`p${i}`))
      const world = new World(t)
      for (const one of agents) one.finding = findings[0] ?? WELL
      const owner = await world.owner({ agents })
      await world.settle()
      let since = owner.core.agents.health('p0')?.since
      let before = findings[0]?.state
      for (const next of findings.slice(1)) {
        for (const one of agents) one.finding = next
        await world.pass(CHECK_EVERY_MS, CHECK_EVERY_MS)
        const health = owner.core.agents.health('p0')
        if (health?.state !== next.state || health.reason !== next.reason) return false
        if ((health.since === since) !== (next.state === before)) return false
        since = health.since
        before = next.state
      }
      return agents.every(({ asked }) => asked === findings.length) && Patient.mostAtOnce <= MAX_CHECKS
    }
  )
  await holds(t, property, 100)
})
