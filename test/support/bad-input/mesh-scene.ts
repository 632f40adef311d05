import { ManualClock } from '../manual-clock.js'
import type { Assert } from 'brittle'
import { meshCallHandler } from '../../../src/adapters/a2a/mesh-binding/mesh-binding.js'
import { type CallPart, encodeCall } from '../../../src/domain/channel/call.js'
import { fromUtf8, utf8 } from '../../../src/kit/ids.js'
import { TaskService } from '../../../src/node/gateway/task-service.js'
import { memberPrincipal } from '../../../src/node/gateway/resolve-agent.js'
import type { CallPiece } from '../../../src/ports/member-calls.js'
import { settled } from '../calls.js'
import { echo, type FakeAgent } from '../fake-agents.js'
import { type FakeNode, World } from '../fake-node.js'
import { NOBODY_GONE } from '../push-scene.js'
import { guardedWebhooks, leakIn, REQUIRED, talker } from './scene.js'
import { rpc, v1 } from './wires.js'

/** A call of a member. */
export interface BadCall {
  readonly path?: string
  readonly parameters?: Readonly<Record<string, string>>
  /** As it is, or as JSON. */
  readonly body: string | object
  readonly by?: 'alice' | 'bob'
}

/** A node and two members of its mesh that have links to it, with the agents of the scene over HTTP. */
export interface BadMesh {
  readonly world: World
  readonly owner: FakeNode
  readonly talk: FakeAgent
  readonly members: Readonly<Record<'alice' | 'bob', FakeNode>>
  /** The last word of a call: JSON, or how it ended. */
  call(call: BadCall): Promise<Record<string, unknown> | string>
  /** Opens a call. */
  open(call: BadCall): AsyncIterable<CallPiece>
  /** What the node says of a part of a call that a member that keeps to no rules sends; null: nothing is wrong. */
  forged(part: CallPart): string | null
  isServing(): Promise<boolean>
}

/** Sets the scene. */
export async function badMesh(t: Assert): Promise<BadMesh> {
  const world = new World(t)
  const talk = talker()
  const owner = await world.owner({ agents: [talk, echo('strict')] })
  const members = { alice: await world.member('alice'), bob: await world.member('bob') }
  const gateway = new TaskService(owner.core, { push: { webhooks: guardedWebhooks(owner), owners: NOBODY_GONE } })
  await gateway.start()
  t.teardown(() => gateway.stop())
  const handler = meshCallHandler({
    gateway,
    principalOf: (peer, claims) =>
      memberPrincipal({ directory: owner.core.directory, clock: new ManualClock() }, peer, claims),
    extensions: (agent) => (agent === 'strict' ? [{ uri: REQUIRED, required: true }] : []),
    extendedCard: () => Promise.resolve({})
  })
  t.teardown(owner.core.memberCalls.serve(handler))
  await world.link(owner, members.alice, members.bob)
  const open = ({ path = '/agents/talk', parameters = {}, body, by = 'alice' }: BadCall): AsyncIterable<CallPiece> =>
    members[by].core.memberCalls.open(owner.id, {
      path,
      parameters,
      body: utf8(typeof body === 'string' ? body : JSON.stringify(body))
    })
  const call: BadMesh['call'] = (asked) => settled(world, lastOf(open(asked), asked.by ?? 'alice'))
  let said = 0
  return {
    world,
    owner,
    talk,
    members,
    call,
    open,
    forged: (part) => owner.core.memberCalls.onPart(members.alice.id, encodeCall(part)),
    isServing: async () =>
      toldOfCall(await call({ body: rpc('SendMessage', v1({ messageId: `good-${++said}` }, 'good')).body ?? {} })) ===
      'done'
  }
}

async function lastOf(
  pieces: AsyncIterable<CallPiece>,
  by: 'alice' | 'bob'
): Promise<Record<string, unknown> | string> {
  let text = 'nothing'
  try {
    for await (const { body } of pieces) text = fromUtf8(body)
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
  const leak = leakIn(text, by)
  return leak === null ? (JSON.parse(text) as Record<string, unknown>) : `${leak}: ${text.slice(0, 500)}`
}

/** What a call was told: `done`, or the code and the reason of its error. */
export function toldOfCall(answer: Record<string, unknown> | string): string {
  if (typeof answer === 'string') return answer
  const error = answer['error'] as
    | { readonly code: number; readonly data: readonly { readonly reason: string }[] }
    | undefined
  return error === undefined ? 'done' : `${error.code} ${error.data[0]?.reason ?? ''}`
}
