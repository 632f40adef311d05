// A `module` agent for the contract suite: does what its input says.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Agent, AgentContext, AgentTask } from '../../../src/agent.js'

/** A program that ignores SIGTERM, and says so. */
const DEAF = 'process.on("SIGTERM", () => {}); console.log(1); setInterval(() => {}, 1000)'

interface Order {
  readonly do: string
  readonly value?: unknown
  readonly size?: number
}

const forever = (): Promise<never> => new Promise(() => {})
let runs = 0

const orders: Readonly<Record<string, (order: Order, ctx: AgentContext) => unknown>> = {
  echo: (order) => order.value ?? null,
  fail: () => {
    throw new Error('it went wrong')
  },
  progress: (_order, ctx) => {
    for (let step = 1; step <= 50; step++) ctx.progress({ step })
    return 'done'
  },
  large: (order) => 'x'.repeat(order.size ?? 0),
  endless: async (_order, ctx) => {
    ctx.progress({ pid: process.pid })
    await pause(600_000, null, { signal: ctx.signal })
  },
  stubborn: (_order, ctx) => {
    ctx.progress({ pid: process.pid })
    return forever()
  },
  busy: (_order, ctx) => {
    ctx.progress({ pid: process.pid })
    for (;;) Math.sqrt(2)
  },
  family: (_order, ctx) => {
    const child = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.once('data', () => ctx.progress({ pid: process.pid, child: child.pid }))
    return forever()
  },
  crash: () => {
    setImmediate(() => {
      throw new Error('nobody caught this')
    })
    return forever()
  },
  quit: () => process.exit(7),
  whoami: () => ({ pid: process.pid, runs }),
  environment: () => ({ ...process.env }),
  nothing: () => undefined,
  bytes: () => ({ raw: new Uint8Array([1, 2, 3]), buffer: Buffer.from('hi') }),
  circle: () => {
    const one: Record<string, unknown> = {}
    one['again'] = one
    return one
  },
  function: () => () => 1,
  log: (_order, ctx) => ctx.log('a line for the log'),
  overlap: async (order, ctx) => {
    ctx.progress('started')
    while (!fs.existsSync(String(order.value))) await pause(5)
    return 'both'
  }
}

const agent: Agent = {
  run(task: AgentTask, ctx: AgentContext) {
    runs++
    const order = task.input as Order
    return orders[order.do]?.(order, ctx)
  }
}

export default agent
