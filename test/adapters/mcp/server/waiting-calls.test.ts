import test, { type Assert } from 'brittle'
import { ANYTHING, call, initialize, McpScene, payloadOf, request, type RawClient } from '../../../support/mcp.js'

/** A scene with a tool `hold` that ends on request, ignores cancellation, and lists the calls that began. */
class HoldingScene extends McpScene {
  readonly begun: unknown[] = []
  readonly ends: (() => void)[] = []
  #listeners: (() => void)[] = []

  constructor(options: ConstructorParameters<typeof McpScene>[0]) {
    super(options)
    this.tool('hold', ({ n }) => {
      this.begun.push(n)
      for (const listener of this.#listeners.splice(0)) listener()
      return new Promise((resolve) => this.ends.push(() => resolve(n)))
    })
  }

  async started(count: number): Promise<readonly unknown[]> {
    while (this.begun.length < count) await new Promise<void>((resolve) => this.#listeners.push(resolve))
    return this.begun
  }

  /** Ends calls in the order of their start until this number has started. */
  async drain(count: number): Promise<readonly unknown[]> {
    for (let ended = 0; ended < count; ended++) {
      await this.started(ended + 1)
      this.ends[ended]?.()
    }
    return this.begun
  }

  get slots(): readonly [running: number, waiting: number] {
    return [this.limits.getTelemetry().concurrentExecutions, this.limits.waitingExecutions]
  }
}

async function opened(t: Assert, scene: McpScene): Promise<RawClient> {
  const client = scene.connect(t)
  await client.open()
  return client
}

function hold(client: RawClient, names: readonly string[]): void {
  for (const n of names) client.write(call(n, 'hold', { n }))
}

function cancel(client: RawClient, id: string): void {
  client.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
}

/** Resolves when the server has read all that a client wrote before. */
async function settled(client: RawClient): Promise<void> {
  const { answers } = client
  await client.ask(request('settled', 'ping'))
  answers.splice(
    answers.findIndex(({ id }) => id === 'settled'),
    1
  )
}

test('calls beyond the slots wait and all succeed: 200 at once with 10 slots', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 10 })
  const client = await opened(t, scene)
  const names = Array.from({ length: 200 }, (_, i) => `call ${i}`)
  hold(client, names)
  await settled(client)
  t.alike(scene.slots, [10, 190])
  t.alike(await scene.drain(200), names, 'in their order')
  const answers = await client.heard(200)
  t.alike(
    answers.map((one) => payloadOf(one)),
    names
  )
  t.alike(scene.slots, [0, 0])
})

test('clients take turns: one with a few calls does not wait for another with many', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 1 })
  const [busy, quiet] = [await opened(t, scene), await opened(t, scene)]
  hold(busy, ['b0', 'b1', 'b2', 'b3', 'b4'])
  await settled(busy)
  hold(quiet, ['q0', 'q1'])
  await settled(quiet)
  t.alike(await scene.drain(7), ['b0', 'b1', 'q0', 'b2', 'q1', 'b3', 'b4'])
})

test('a full queue refuses the newest call of the client with the most, not a client with fewer', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 1, maxWaitingExecutions: 3 })
  const [busy, quiet] = [await opened(t, scene), await opened(t, scene)]
  hold(busy, ['b0', 'b1', 'b2', 'b3', 'b4'])
  const [first] = await busy.heard(1)
  t.alike([first.id, payloadOf(first)['code']], ['b4', 'RESOURCE_EXHAUSTED'])
  hold(quiet, ['q0', 'q1'])
  const [, second] = await busy.heard(2)
  t.alike([second.id, payloadOf(second)['code']], ['b3', 'RESOURCE_EXHAUSTED'], 'it gave its place to q0')
  const [third] = await quiet.heard(1)
  t.alike([third.id, payloadOf(third)['code']], ['q1', 'RESOURCE_EXHAUSTED'], 'one call fewer is no claim')
  t.alike((payloadOf(third)['details'] as { retryable: boolean }).retryable, true)
  t.alike(await scene.drain(4), ['b0', 'b1', 'q0', 'b2'])
})

test('a call that is canceled while it waits never begins, and later calls move up', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 1 })
  const client = await opened(t, scene)
  hold(client, ['a', 'b', 'c'])
  cancel(client, 'b')
  await settled(client)
  t.alike(scene.slots, [1, 1])
  t.alike(await scene.drain(2), ['a', 'c'])
  await client.heard(2)
  t.alike(
    client.answers.map(({ id }) => id),
    ['a', 'c']
  )
  t.ok(scene.records.some(({ outcome, arguments: args }) => outcome === 'aborted' && (args as { n: string }).n === 'b'))
})

test('the calls of a client that leaves wait no more', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 1 })
  const [gone, other] = [await opened(t, scene), await opened(t, scene)]
  hold(gone, ['g0', 'g1', 'g2'])
  await settled(gone)
  await gone.close()
  hold(other, ['o0'])
  t.alike(await scene.started(2), ['g0', 'o0'])
  t.alike(scene.slots, [1, 0])
})

test('a storm of cancellations leaves slots for others, and cannot run handlers without a bound', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 2 })
  const [storm, other] = [await opened(t, scene), await opened(t, scene)]
  for (let i = 0; i < 50; i++) {
    hold(storm, [`s${i}`])
    cancel(storm, `s${i}`)
  }
  await settled(storm)
  // Two slots, and four times two handlers that run without one.
  t.is(scene.begun.length, 10)
  hold(other, ['o0'])
  await settled(other)
  t.is(scene.begun.length, 10, 'handlers that never stop keep their slots in the end')
  for (const end of scene.ends.splice(0)) end()
  await scene.started(11)
  scene.ends[0]?.()
  t.is(payloadOf((await other.heard(1))[0]), 'o0')
  await scene.recorded(51)
  t.alike(scene.slots, [0, 0])
})

test('a cancelled call that stops late makes no slot free twice', async (t: Assert) => {
  const scene = new HoldingScene({ maxConcurrentExecutions: 1 })
  const client = await opened(t, scene)
  hold(client, ['a'])
  await scene.started(1)
  cancel(client, 'a')
  hold(client, ['b', 'c'])
  await scene.started(2)
  scene.ends[0]?.()
  await scene.recorded(1)
  t.alike(
    [scene.begun, scene.slots],
    [
      ['a', 'b'],
      [1, 1]
    ]
  )
})

test('a second handshake on a running connection is refused, and the connection goes on', async (t: Assert) => {
  const scene = new McpScene()
  scene.registry.register({ name: 'echo', description: 'echo', inputSchema: ANYTHING }, (args) => Promise.resolve(args))
  const client = await opened(t, scene)
  const { error, id } = await client.ask(initialize('again'))
  t.alike([error?.code, id], [-32_600, 'again'])
  t.ok(String(error?.data?.['reason']).includes('initialized already'))
  t.alike(payloadOf(await client.ask(call(1, 'echo', { a: 1 }))), { a: 1 })
})
