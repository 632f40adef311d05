import test from 'brittle'
import { approvalScene, callText, waitingOf } from '../../support/approval-scene.js'
import { agentDefinition, capability, FakeAgent } from '../../support/fake-agents.js'
import { failsWith } from '../../support/fails.js'
import { forge, request } from '../../support/forge.js'

test('the list marks what it cuts; approvals show gives all of it as the sender wrote it', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const description = `clean\u001b[31m up\n${'x'.repeat(2000)}`
  const justification = `because ${'y'.repeat(900)}`
  const input = { command: 'z'.repeat(5000), bytes: new Uint8Array([1, 2]) }
  forge(owner, peer, { payload: request('long', { description, input }), metadata: { tier: 0, justification } })
  forge(owner, peer, { payload: request('short', { description: 'tidy', input: { a: '…' } }), metadata: { tier: 0 } })
  await world.settle()
  const [long, short] = await waitingOf(peer)
  t.alike(long?.cut, ['input', 'description', 'justification'])
  t.ok(long?.input.endsWith('…') && long.description.endsWith('…') && long.justification?.endsWith('…'))
  t.alike(short?.cut, [])
  const api = peer.api()
  const shown = await api.call('approvals.show', { id: long?.id.slice(0, 8) ?? '' })
  t.alike(shown, { ...long, requestId: 'long', attempt: 1, copies: 1, whole: { description, justification, input } })
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => api.call('approvals.show', { id: 'app_nobody' }))
  const several = await failsWith(t, 'AMBIGUOUS_NAME', () => api.call('approvals.show', { id: 'app_' }))
  t.alike(several.data, { candidates: [long?.id, short?.id] })
})

test('a request of an older build waits for approval until its caller gives up, where that is earlier', async (t) => {
  const { world, owner, peer } = await approvalScene(t)
  const left = async (): Promise<unknown[]> => {
    const list = await waitingOf(peer)
    return list.map((one) => [Date.parse(one.expiresAt) - Date.parse(one.askedAt), one.endsBy])
  }
  void callText(owner, { timeoutMs: 20_000 })
  void callText(owner, { wait: false })
  await world.settle()
  t.alike(await left(), [
    [300_000, 'node'],
    [300_000, 'node']
  ])
  const says = (timeoutMs: unknown): void =>
    forge(owner, peer, { timestamp: 5000, payload: request(`r${String(timeoutMs)}`, { timeoutMs }) })
  for (const timeoutMs of [30_000, 5_000_000_000, 1, undefined]) says(timeoutMs)
  await world.settle()
  t.alike((await left()).slice(2), [
    [30_000, 'caller'],
    [300_000, 'node'],
    [1, 'caller'],
    [300_000, 'node']
  ])
  await world.pass(32_000, 1000)
  t.alike(
    (await left()).map((one) => Array.isArray(one) && one[1]),
    ['node', 'node', 'node', 'node'],
    'it is taken back then'
  )
})

test('--remember reports the added rule, and the other approvals that it decided', async (t) => {
  const capabilities = [capability('text.do'), capability('text.other')]
  const agent = new FakeAgent(agentDefinition('text', { capabilities, concurrency: 8 }), () => ({
    ok: true,
    result: null
  }))
  const { world, owner, peer } = await approvalScene(t, undefined, agent)
  const api = peer.api()
  for (const id of ['a', 'b']) forge(owner, peer, { payload: request(id) })
  forge(owner, peer, { payload: request('c', { capability: 'text.other' }) })
  await world.settle()
  const [a, b, c] = await waitingOf(peer)
  const allowed = await api.call('approvals.allow', { id: a?.id ?? '', remember: true })
  const { remembered } = allowed
  t.alike([remembered?.file, remembered?.line], ['/config/policy.yaml', 3])
  t.is(peer.policy.text.split('\n')[2]?.split(' #')[0], `  - ${remembered?.text}`)
  const { rules } = await api.call('policy.show', {})
  t.is(rules.find(({ line }) => line === 3)?.id, remembered?.id)
  t.alike(
    allowed.alsoDecided?.map(({ id, outcome }) => [id, outcome]),
    [[b?.id, 'allowed']]
  )
  await world.settle()
  t.is(agent.tasks.length, 2)
  const waiting = await waitingOf(peer)
  t.alike(
    waiting.map(({ id, rule }) => [id, rule]),
    [[c?.id, 'policy.yaml:4: ask']],
    'the ask rule is named with its present line'
  )
  forge(owner, peer, { payload: request('d', { capability: 'text.other' }) })
  await world.settle()
  const denied = await api.call('approvals.deny', { id: c?.id ?? '', remember: true })
  t.alike(
    denied.alsoDecided?.map(({ outcome }) => outcome),
    ['denied']
  )
  t.alike(await waitingOf(peer), [])
  forge(owner, peer, { payload: request('e', { capability: 'text.third' }) })
  await world.settle()
  const once = await api.call('approvals.deny', { id: (await waitingOf(peer))[0]?.id ?? '' })
  t.absent('remembered' in once || 'alsoDecided' in once, 'without --remember nothing is printed about rules')
})
