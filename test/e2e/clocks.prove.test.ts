import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { doctor } from '../support/doctor.js'
import { type TestMesh, testMesh, type TestNode, until, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

/** Variables of a process whose clock differs from that of this machine. */
async function clockOff(mesh: TestMesh, ms: number): Promise<Record<string, string>> {
  const file = path.join(await mesh.dir(), `clock${ms}.mjs`)
  const code = `const real = Date.now
globalThis.Date = class extends Date {
  constructor(...args) { args.length === 0 ? super(real() + ${ms}) : super(...args) }
  static now() { return real() + ${ms} }
}`
  await fs.writeFile(file, code)
  return { NODE_OPTIONS: `--import=${file}` }
}

const MIN = 60_000

async function problemsOf(node: TestNode): Promise<string[]> {
  const { problems } = await node.api.call('node.status', {})
  return problems.filter(({ code }) => code === 'CLOCK_SKEW').map(({ message }) => message)
}

for (const [ms, words, reverse, result] of [
  [20 * MIN, '20 min ahead of', '20 min behind', 'warn'],
  // The files of the home are newer than such a clock.
  [-20 * MIN, '20 min behind', '20 min ahead of', 'fail']
] as const) {
  test(`a node whose clock is ${words} joins by a short invite, calls and is called, and both nodes name the skew`, async (t) => {
    const mesh = await testMesh(t, { commandsHere: true })
    const a = await mesh.start('a')
    const { code } = await a.api.call('invite.create', { trust: 'mine', ttlMs: 5 * MIN })
    const env = await clockOff(mesh, ms)
    const b = await mesh.start('b', { join: code, env })
    await Promise.all([untilOnline(a, 1), untilOnline(b, 1), untilAgent(a, 'text@b'), untilAgent(b, 'text@a')])
    for (const [from, to] of [
      [a, 'text@b'],
      [b, 'text@a']
    ] as const) {
      const call = ['call', to, 'text.stats', '{"text":"x"}', '--timeout', '20s']
      t.is(
        (await from.json<{ outcome: string }>(call)).outcome,
        'COMPLETED',
        'no deadline is compared with the clock of another node'
      )
    }
    t.alike(await problemsOf(b), [`the clock of this machine is ${words} that of a: set the wrong one of both`])
    t.alike(await problemsOf(a), [`the clock of this machine is ${reverse} that of b: set the wrong one of both`])
    const shown = (await mesh.run(['--home', b.home, 'doctor'], { env })).stdout
    t.ok(shown.includes(`CLOCK_SKEW: the clock of this machine is ${words} that of a`), shown)
    await b.stop()
    const stopped = await mesh.run(['--home', b.home, 'doctor'], { env })
    t.ok(
      new RegExp(`${result} {2}clock +(?:it says .*; )?it is ${words} that of the node`).test(stopped.stdout),
      stopped.stdout
    )
    const fixed = (await doctor(mesh, b.home)).checks.find(({ name }) => name === 'clock')
    t.is(fixed?.text.includes('of the node') === true, false, 'a clock that was set is no fault')
  })
}

test('an expired invite names the skew when clocks differ, and says nothing of clocks when they agree', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine', ttlMs: 1000 })
  await untilTrue(
    async () => (await a.api.call('invite.list', {})).invites.some(({ state }) => state === 'expired'),
    'it expired'
  )
  const env = await clockOff(mesh, -20 * MIN)
  const home = path.join(await mesh.dir(), 'b')
  const join = ['--home', home, 'start', '--join', code, '--name', 'b']
  const behind = await mesh.run(join, { env })
  t.is(behind.code, 5)
  t.ok(
    /the clock of this machine is 20 min behind that of the node .*INVITE_EXPIRED/s.test(behind.stderr),
    behind.stderr
  )
  t.ok(behind.stderr.includes('try: date'), behind.stderr)
  const shown = (await mesh.run(['--home', home, 'doctor'], { env })).stdout
  t.ok(/warn {2}clock +it is 20 min behind/.test(shown), shown)
  const agreed = await mesh.run(['--home', path.join(await mesh.dir(), 'c'), ...join.slice(2)])
  t.is(agreed.code, 5)
  t.absent(agreed.stderr.includes('clock'), agreed.stderr)
})

test('a request to a node whose clock is 20 minutes ahead waits for its approval, and then runs', async (t) => {
  const mesh = await testMesh(t, { commandsHere: true })
  const a = await mesh.start('a')
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const home = path.join(await mesh.dir(), 'b')
  await fs.mkdir(home, { mode: 0o700 })
  await fs.writeFile(path.join(home, 'policy.yaml'), 'rules:\n  - capability: text.*\n    decision: ask\n')
  const b = await mesh.start('b', { join: code, home, env: await clockOff(mesh, 20 * MIN) })
  await untilAgent(a, 'text@b')
  const call = a.json<{ outcome: string }>(['call', 'text@b', 'text.stats', '{"text":"x"}', '--timeout', '60s'])
  const { approvals } = await until(b.api, 'approvals.list', {}, (now) => now.approvals.length > 0)
  t.is((await b.cli(['approvals', 'allow', approvals[0]?.id ?? ''])).code, 0)
  t.is((await call).outcome, 'COMPLETED')
})
