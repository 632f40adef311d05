// The program of a `command` agent for the contract suite: does what its input says.
import { spawn } from 'node:child_process'
import fs from 'node:fs'

/** A program that ignores SIGTERM, and says so. */
const DEAF = 'process.on("SIGTERM", () => {}); console.log(1); setInterval(() => {}, 1000)'

interface Order {
  readonly do: string
  readonly value?: unknown
  readonly size?: number
}

const { input } = JSON.parse(fs.readFileSync(0, 'utf8')) as { input: Order }
const report = (data: object): void => void fs.writeSync(3, `${JSON.stringify({ type: 'progress', ...data })}\n`)
const forever = (): void => void setInterval(() => {}, 1000)

const orders: Readonly<Record<string, () => void>> = {
  echo: () => void fs.writeSync(1, JSON.stringify(input.value ?? null)),
  fail: () => {
    fs.writeSync(2, 'it went wrong\n')
    process.exitCode = 3
  },
  progress: () => {
    for (let step = 1; step <= 50; step++) report({ step })
    fs.writeSync(1, '"done"')
  },
  large: () => void process.stdout.write('x'.repeat(input.size ?? 0)),
  endless: () => {
    report({ pid: process.pid })
    forever()
  },
  stubborn: () => {
    process.on('SIGTERM', () => {})
    report({ pid: process.pid })
    forever()
  },
  family: () => {
    const child = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.once('data', () => report({ pid: process.pid, child: child.pid }))
    forever()
  }
}

orders[input.do]?.()
