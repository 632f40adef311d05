import test from 'brittle'
import { shortId } from '../../../src/kit/ids.js'
import { MACHINE_ANSWER_MS } from '../../../src/node/api/machine-approvals.js'
import type { Question, QuestionAnswer } from '../../../src/domain/task/question.js'
import { waitingOf } from '../../support/approval-scene.js'
import { failsWith } from '../../support/fails.js'
import { asked, forged, type Machines, machines, OPERATOR } from '../../support/machine-scene.js'

const FORM: Question = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Which?',
    requestedSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
  }
}

/** A question of an agent of the guest to the owner of `peer`: its id, and its answer. */
async function question({
  world,
  peer,
  asker
}: Machines): Promise<{ readonly id: string; answer: QuestionAnswer | null }> {
  const before = new Set((await waitingOf(peer)).map(({ id }) => id))
  const agent = { agentId: 'clerk', nodeId: asker.id } as const
  const listed = peer.core.questions.add({ question: FORM, agent, capability: 'clerk.ask', owner: null }, 600_000)
  const found: { id: string; answer: QuestionAnswer | null } = { id: '', answer: null }
  void listed?.answer.then((answer) => (found.answer = answer))
  await world.settle()
  found.id = (await waitingOf(peer)).find(({ id }) => !before.has(id))?.id ?? ''
  return found
}

test('a machine of the owner lists, shows and answers the questions of agents to another one', async (t) => {
  const scene = await machines(t)
  const { world, desktop, peer, asker } = scene
  const one = await question(scene)
  const { id } = one
  const api = desktop.api()
  const { machines: others = [] } = await api.call('approvals.list', { machines: true })
  const [row] = others.flatMap(({ approvals }) => approvals)
  t.alike([row?.id, row?.question, row?.toNode.id], [id, 'form', peer.id])
  t.alike((await api.call('approvals.show', { id })).whole, {
    description: 'Which?',
    justification: null,
    input: { mode: 'form', requestedSchema: FORM.params['requestedSchema'] }
  })
  await failsWith(t, 'INVALID_INPUT', () => api.call('approvals.allow', { id, content: { a: 7 } }))
  await failsWith(t, 'INVALID_INPUT', () => api.call('approvals.allow', { id }))
  await failsWith(t, 'USAGE', () => api.call('approvals.allow', { id, content: { a: 'x' }, remember: true }))
  await failsWith(t, 'PAYLOAD_TOO_LARGE', () => api.call('approvals.allow', { id, content: { a: 'x'.repeat(70_000) } }))
  t.is((await forged(asker, peer.id, { do: 'allow', id, content: { a: 'x' }, by: OPERATOR })).error?.code, 'FORBIDDEN')
  const weaker = { ...OPERATOR, tier: 2 }
  t.is((await forged(desktop, peer.id, { do: 'show', id, by: weaker })).error?.code, 'POLICY_DENIED')
  t.is(one.answer, null)
  await api.call('approvals.allow', { id: id.slice(0, -1), content: { a: 'x'.repeat(10_000) } })
  await world.settle()
  t.alike(one.answer, { ok: true, result: { action: 'accept', content: { a: 'x'.repeat(10_000) } } })
  t.is(peer.audit.of('approval').at(-1)?.reason, `${id} answered by operator of owner (${shortId(desktop.id)})`)
  await failsWith(t, 'APPROVAL_NOT_FOUND', () => api.call('approvals.allow', { id, content: { a: 'x' } }))
  const second = await question(scene)
  await api.call('approvals.deny', { id: second.id })
  await world.settle()
  t.alike(second.answer, { ok: true, result: { action: 'decline' } })
})

test('an answer that is too large for another machine is refused once, and nothing fails later', async (t) => {
  const scene = await machines(t)
  const { world, desktop } = scene
  const { id } = await question(scene)
  const rejections: unknown[] = []
  const onRejection = (reason: unknown): void => void rejections.push(reason)
  process.on('unhandledRejection', onRejection)
  t.teardown(() => process.off('unhandledRejection', onRejection))
  const content = { a: 'x'.repeat(70_000) }
  await failsWith(t, 'PAYLOAD_TOO_LARGE', () => desktop.api().call('approvals.allow', { id, content }))
  world.clock.advance(MACHINE_ANSWER_MS)
  await world.settle()
  t.alike(rejections, [])
})

test('a machine of an earlier build, which knows no questions, gets none in its list', async (t) => {
  const scene = await machines(t)
  const { desktop, peer } = scene
  const id = await asked(scene)
  await question(scene)
  const listed = (await forged(desktop, peer.id, { do: 'list', by: OPERATOR })) as {
    answer?: { approvals: { id: string }[] }
  }
  t.alike(
    listed.answer?.approvals.map((one) => one.id),
    [id]
  )
})
