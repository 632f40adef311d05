import { ManualClock } from './manual-clock.js'
import type { Assert } from 'brittle'
import { meshCallHandler } from '../../src/adapters/a2a/mesh-binding/mesh-binding.js'
import { fromUtf8, utf8 } from '../../src/kit/ids.js'
import { TaskService } from '../../src/node/gateway/task-service.js'
import { memberPrincipal } from '../../src/node/gateway/resolve-agent.js'
import type { CallPiece, CallRequest } from '../../src/ports/member-calls.js'
import type { FakeNode, World } from './fake-node.js'

/** Opens the gateway of a node and mounts it on the links to members, as `openMeshBinding` does. */
export async function servesCalls(t: Assert, node: FakeNode): Promise<TaskService> {
  const gateway = new TaskService(node.core)
  await gateway.start()
  t.teardown(() => gateway.stop())
  const stop = node.core.memberCalls.serve(
    meshCallHandler({
      gateway,
      principalOf: (peer, claims) =>
        memberPrincipal({ directory: node.core.directory, clock: new ManualClock() }, peer, claims),
      extensions: () => [],
      extendedCard: (_by, agent) => Promise.resolve({ name: agent ?? 'node' })
    })
  )
  t.teardown(stop)
  return gateway
}

/** A request of JSON-RPC to an agent. */
export function rpcCall(method: string, params: unknown, more: Partial<CallRequest> = {}): CallRequest {
  return {
    path: '/agents/slow',
    parameters: {},
    body: utf8(JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })),
    ...more
  }
}

/** A message of a user as 1.0 has it. */
export function userMessage(messageId: string, text: string, more: object = {}): object {
  return { message: { messageId, role: 'ROLE_USER', parts: [{ text }], ...more } }
}

/** A piece of a call as JSON. */
export interface ReadPiece {
  readonly generation: number | null
  readonly json: Record<string, unknown>
}

/** What came back over a call, gathered while the test goes on. */
export interface Gathered {
  readonly pieces: ReadPiece[]
  readonly end: Promise<string>
}

/** Reads a call to its end: `done`, or the code of what it ended with. */
export function gathered(pieces: AsyncIterable<CallPiece>): Gathered {
  const got: ReadPiece[] = []
  const read = async (): Promise<string> => {
    try {
      for await (const piece of pieces)
        got.push({
          generation: piece.type === 'item' ? piece.generation : null,
          json: JSON.parse(fromUtf8(piece.body)) as Record<string, unknown>
        })
      return 'done'
    } catch (error) {
      return (error as { code?: string }).code ?? String(error)
    }
  }
  return { pieces: got, end: read() }
}

/** Lets a world go on until a promise is settled. */
export async function settled<T>(world: World, promise: Promise<T>, stepMs = 50): Promise<T> {
  let isOver = false
  const end = promise.finally(() => (isOver = true))
  // Looked at in the end.
  end.catch(() => {})
  for (let turns = 0; !isOver && turns < 4000; turns++) {
    await world.settle()
    await new Promise((resolve) => setImmediate(resolve))
    if (!isOver && turns > 20) await world.pass(stepMs, stepMs)
  }
  return await end
}
