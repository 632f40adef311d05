import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import type { Reply } from '../../src/ports/node-api.js'
import { gatewayNode } from '../support/a2a.js'
import { type LocalNode, testMesh, untilOnline, untilTrue } from '../support/nodes.js'
import { TIMEOUT, pair } from '../support/mesh-pair.js'

/** The texts of the chunks that a task of the node was told of. */
async function chunksOf(node: LocalNode, id: string): Promise<string[]> {
  const { events } = await node.json<{
    events: { type: string; data?: { a2a?: { artifact?: { parts: { text: string }[] } } } }[]
  }>(['tasks', 'show', id])
  return events.flatMap((event) => event.data?.a2a?.artifact?.parts.map(({ text }) => text) ?? [])
}

test(
  'a callee that is killed in the middle of a stream is taken up again: none of its events comes twice or is missing',
  TIMEOUT,
  async (t) => {
    const mesh = await testMesh(t)
    const { a, b } = await pair(mesh)
    const gate = path.join(a.dir, 'gate-')
    const input = { chunks: ['one ', 'two ', 'three'], gate }
    const url = `a2a-mesh://${a.node.info.node.id}/agents/talk`
    const calling = b.json<Reply>(['call', url, JSON.stringify(input), '--timeout', '2m'])
    const taskOf = async (): Promise<string> =>
      (await b.json<{ tasks: { id: string; agent: string }[] }>(['tasks'])).tasks.find((one) =>
        one.agent.startsWith('a2a@')
      )?.id ?? ''
    await untilTrue(
      async () => (await chunksOf(b, await taskOf()).catch(() => [])).length === 1,
      'the first chunk is there'
    )
    a.node.kill('SIGKILL')
    await a.node.exited
    for (const step of [1, 2]) await fs.writeFile(`${gate}${step}`, '')
    await gatewayNode(mesh, 'a', { home: a.node.home, dir: a.dir, token: a.token })
    const reply = await calling
    t.ok(JSON.stringify(reply.payload).includes('one two three'), JSON.stringify(reply.payload))
    // What may be repeated begins anew after the kill: its first chunk takes the place of the one before.
    t.alike((await chunksOf(b, await taskOf())).slice(-3), ['one ', 'two ', 'three'])
  }
)

test(
  'a link that is lost in the middle of a stream costs nothing: every chunk comes once, in order',
  TIMEOUT,
  async (t) => {
    const { a, b } = await pair(await testMesh(t))
    const gate = path.join(a.dir, 'gate-')
    const input = { chunks: ['one ', 'two ', 'three'], gate }
    const calling = b.json<Reply>(['call', 'a2a-mesh://a/agents/talk', JSON.stringify(input), '--timeout', '2m'])
    const taskOf = async (): Promise<string> =>
      (await b.json<{ tasks: { id: string; agent: string }[] }>(['tasks'])).tasks.find((one) =>
        one.agent.startsWith('a2a@')
      )?.id ?? ''
    await untilTrue(
      async () => (await chunksOf(b, await taskOf()).catch(() => [])).length === 1,
      'the first chunk is there'
    )
    a.node.kill('SIGSTOP')
    await untilOnline(b, 0)
    await fs.writeFile(`${gate}1`, '')
    a.node.kill('SIGCONT')
    await fs.writeFile(`${gate}2`, '')
    t.ok(JSON.stringify((await calling).payload).includes('one two three'))
    t.alike(await chunksOf(b, await taskOf()), ['one ', 'two ', 'three'])
  }
)
