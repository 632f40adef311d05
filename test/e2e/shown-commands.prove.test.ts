import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { fencesOf } from '../support/markdown.js'
import { freePort, ROOT, untilTrue } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

/** A line of a shell block, run as it is printed. */
interface Step {
  /** README.md or a file of docs. */
  readonly page: string
  /** The line as printed. `\n` where the block joins lines by a backslash. */
  readonly line: string
  /** Whose home. Default: laptop. */
  readonly on?: 'laptop' | 'desktop'
  /** In the line: a placeholder, and its value in this run. */
  readonly place?: (scene: Scene) => Readonly<Record<string, string>>
  readonly before?: (scene: Scene) => unknown
  readonly input?: (scene: Scene) => string
  readonly env?: (scene: Scene) => Readonly<Record<string, string>>
  /** Of its output, both streams: no other command prints it. A command that follows is interrupted then. */
  readonly see: RegExp
  readonly isFollowing?: true
  /** Once a command that follows has printed something. */
  readonly meanwhile?: (scene: Scene) => unknown
  /** It asks a person. Where there is none it exits with 2 and names the command that does not ask; that one is run. */
  readonly isAsking?: true
  /** Default: 0. */
  readonly exit?: number
}

/** The end of a command of the shell. */
interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly all: string
  /** It ran until its output matched. */
  readonly isInterrupted: boolean
}

/** Lines of npm: the packed file, the demo and this run are their tests. */
const OF_NPM = /^(npm |node scripts\/)/
const PATIENCE_MS = 60_000
const HAS_SYSTEMD = fs.existsSync('/run/systemd/system')
const README = 'README.md'
const USING = 'docs/USING.md'

/** Two machines of a user: each has a home directory, and `a2a-node` in its path. */
class Scene {
  readonly dir: string
  readonly port: number
  readonly httpPort: number
  code = ''
  token = ''
  approvals: string[] = []

  constructor(dir: string, { port, httpPort }: { readonly port: number; readonly httpPort: number }) {
    this.dir = dir
    this.port = port
    this.httpPort = httpPort
  }

  homeOf(machine: string): string {
    return path.join(this.dir, machine)
  }

  write(name: string, text: string): void {
    const file = path.join(this.homeOf('laptop'), name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }

  /** Runs a line of a shell. With `until` it is interrupted once its output matches. */
  sh(line: string, { on = 'laptop', env, input, until, meanwhile }: RunOptions = {}): Promise<Ended> {
    const home = this.homeOf(on)
    const child = spawn('/bin/sh', ['-c', line.startsWith('a2a-node') ? `exec ${line}` : line], {
      cwd: home,
      env: {
        PATH: `${path.join(this.dir, 'bin')}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
        HOME: home,
        TMPDIR: this.dir,
        XDG_RUNTIME_DIR: path.join(home, 'run'),
        A2A_NODE_NETWORK_KIND: 'local',
        A2A_NODE_LOCAL_PORT: String(this.port),
        EDITOR: path.join(this.dir, 'bin', 'editor'),
        NO_COLOR: '1',
        ...env
      }
    })
    child.stdin.end(input ?? '')
    return new Promise((resolve, reject) => {
      let [stdout, all, isInterrupted] = ['', '', false]
      const timer = setTimeout(() => {
        child.kill('SIGKILL')
        reject(new Error(`${line} did not end: ${all}`))
      }, PATIENCE_MS)
      const take = (text: string): void => {
        if (all === '') meanwhile?.(this)
        all += text
        if (isInterrupted || until?.test(all) !== true) return
        isInterrupted = true
        child.kill('SIGINT')
      }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text
        take(text)
      })
      child.stderr.setEncoding('utf8').on('data', take)
      child.on('close', (code) => {
        clearTimeout(timer)
        resolve({ code, stdout, all, isInterrupted })
      })
    })
  }

  /** The value of a member of a JSON answer. */
  async json(line: string, options: RunOptions = {}): Promise<Record<string, unknown>> {
    const { code, stdout, all } = await this.sh(`${line} --json`, options)
    if (code !== 0) throw new Error(`${line}: ${all}`)
    return JSON.parse(stdout) as Record<string, unknown>
  }
}

interface RunOptions {
  readonly on?: 'laptop' | 'desktop'
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  readonly until?: RegExp
  readonly meanwhile?: (scene: Scene) => unknown
}

/** The text of the fence of a page that has a word. */
function fenceOf(page: string, word: string): string {
  const found = fencesOf(fs.readFileSync(path.join(ROOT, page), 'utf8')).find(({ text }) => text.includes(word))
  if (found === undefined) throw new Error(`${page} has no block with ${word}`)
  return found.text
}

/** The lines of the shell blocks of a page; a backslash joins two. */
function shownLines(page: string): string[] {
  const shell = fencesOf(fs.readFileSync(path.join(ROOT, page), 'utf8')).filter(({ language }) => language === 'sh')
  return shell.flatMap(({ text }) => text.replaceAll('\\\n', ' ').trim().split('\n'))
}

function agent(id: string, sideEffect: string, program: string): string {
  const block = `a2a:\n  capabilities:\n    - id: ${id}\n      description: Works.\n      input: {}\n      output: {}\n      sideEffect: ${sideEffect}\n`
  const runtime = `  runtime: { type: command, command: [node, -e, ${JSON.stringify(program)}] }\n`
  return `---\nname: ${id.split('.')[0]}-${id.split('.')[1]}\ndescription: Works.\n${block}${runtime}---\n`
}

/** Two calls of a capability that a person has to approve. */
async function twoWaiting(scene: Scene): Promise<void> {
  await newPolicy(scene, 'rules:\n  - capability: [host.report, text.stats]\n    decision: ask\n')
  for (const words of ['host@laptop host.report {}', `text@laptop text.stats '{"text":"x"}'`])
    await scene.sh(`a2a-node call ${words} --no-wait`, { on: 'desktop' })
  await untilTrue(async () => {
    const { approvals } = (await scene.json('a2a-node approvals ls')) as { approvals: { id: string }[] }
    scene.approvals = approvals.map(({ id }) => id)
    return approvals.length === 2
  }, 'two calls wait for approval')
}

/** The node reads its policy as soon as the file changes. */
async function newPolicy(scene: Scene, text: string): Promise<void> {
  const rules = async (): Promise<string> => JSON.stringify((await scene.json('a2a-node policy show'))['rules'])
  const before = await rules()
  scene.write('.config/a2a-node/policy.yaml', text)
  await untilTrue(async () => (await rules()) !== before, 'the node has the changed rules')
}

/** Lines of an MCP client whose call fails. */
const MCP_CALLS: readonly string[] = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'client', version: '1' } }
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/call', params: { name: 'a2a_nothing', arguments: {} } }
].map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }))

const STEPS: readonly Step[] = [
  { page: README, line: 'a2a-node start --name laptop --detach', see: /Runs in the background/ },
  { page: README, line: 'a2a-node invite --mine', see: /Joins 1 node as L1[^]*It joins as a machine of yours/ },
  {
    page: README,
    line: 'a2a-node start --name desktop --join - --detach',
    on: 'desktop',
    before: async (scene) => (scene.code = (await scene.sh('a2a-node invite --mine')).stdout),
    input: ({ code }) => code,
    see: /joined the mesh home as a machine of the inviter's/
  },
  { page: README, line: 'a2a-node peers', see: /desktop .* mine .* online/ },
  { page: README, line: 'a2a-node ping desktop', see: /4 pings: min/ },
  { page: README, line: 'a2a-node agents', see: /text@desktop +L1 +ready/ },
  { page: README, line: "a2a-node send text@desktop 'The quick brown fox'", see: /"words": 4/ },
  { page: README, line: `a2a-node call - text.stats '{"text":"one two"}'`, see: /"words": 2/ },
  { page: README, line: "a2a-node swarm run 'report yourselves' --capability host.report", see: /2 of 2 items done/ },
  {
    page: README,
    line: "a2a-node swarm run 'count words' --capability text.stats --items 'src/**/*.ts' --attach",
    before: (scene) => {
      for (const name of ['a', 'b', 'c/d']) scene.write(`src/${name}.ts`, 'some words')
    },
    see: /3 of 3 items done/
  },
  {
    page: README,
    line: `a2a-node swarm run 'count' --capability text.stats --items lines.txt --input '{"text":"{item}"}'`,
    before: (scene) => scene.write('lines.txt', 'one\ntwo words\n'),
    see: /two words +\S+ +completed .*"words":2/
  },
  {
    page: README,
    line: 'a2a-node agents check tester.md',
    before: (scene) => {
      scene.write('tester.md', fenceOf(README, 'Runs one test file.'))
      scene.write('some.test.js', "require('node:test')('it works', () => {})\n")
    },
    see: /ok {2}agent tester: test\.run/
  },
  { page: README, line: `a2a-node agents run tester.md '{"file":"some.test.js"}'`, see: /pass 1/ },
  {
    page: README,
    line: 'a2a-node connect',
    before: (scene) => scene.write('.claude.json', '{}'),
    see: /claude +Claude Code +yes +no/
  },
  { page: README, line: 'a2a-node connect claude', isAsking: true, see: /\+\+\+ .*\.claude\.json[^]*"a2a-node": \{/ },
  {
    page: README,
    line: 'a2a-node a2a token create',
    before: async (scene) => {
      await scene.sh('a2a-node stop')
      const restarted = await scene.sh(`a2a-node start --http ${scene.httpPort} --detach`)
      if (restarted.code !== 0) throw new Error(restarted.all)
      scene.token = String((await scene.json('a2a-node a2a token create'))['token'])
    },
    see: /scopes read and send, for 90 d/
  },
  {
    page: README,
    line: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'    -d '{"prompt":"one two three"}' http://127.0.0.1:8421/agents/text/run`,
    place: ({ httpPort }) => ({ '8421': String(httpPort) }),
    env: ({ token }) => ({ TOKEN: token }),
    see: /"words":3/
  },
  {
    page: USING,
    line: 'a2a-node service install --dry-run',
    see: /a2a-node\.service|systemd does not run/,
    exit: HAS_SYSTEMD ? 0 : 9
  },
  {
    page: USING,
    line: 'a2a-node invite --guest --tier L2 --ttl 1h --uses 3',
    see: /Joins 3 nodes as L2, for 1 h\. It joins as a guest/
  },
  {
    page: USING,
    line: 'a2a-node peers trust desktop mine',
    before: (scene) => scene.sh('a2a-node peers trust desktop guest'),
    see: /desktop is yours now/
  },
  { page: USING, line: "a2a-node doc set notes 'milk, bread'", see: /notes is new and set/ },
  { page: USING, line: `a2a-node doc set settings '{"color":"blue"}' --type map`, see: /settings is new and set/ },
  { page: USING, line: 'a2a-node doc get settings', see: /"color": "blue"/ },
  { page: USING, line: 'a2a-node doc edit notes', see: /notes is changed/ },
  { page: USING, line: 'a2a-node doc watch notes', isFollowing: true, see: /notes {2}text of 17 characters/ },
  { page: USING, line: 'a2a-node doc history notes', see: /laptop +text +\+6 -0 [^]*laptop +text +\+11 -0 / },
  { page: USING, line: 'a2a-node doc access notes --write mine', see: /may write +desktop; its creator/ },
  {
    page: USING,
    line: "a2a-node swarm run 'a letter' --plan plan.yaml",
    before: async (scene) => {
      scene.write('plan.yaml', fenceOf(USING, 'tasks:').replace(', labels: [gpu]', ''))
      const say = (value: object): string => `console.log(${JSON.stringify(JSON.stringify(value))})`
      scene.write('.config/a2a-node/agents/text-write.md', agent('text.write', 'none', say({ text: 'Dear Bob' })))
      scene.write('.config/a2a-node/agents/text-check.md', agent('text.check', 'none', say({ faults: 1 })))
      await untilTrue(async () => {
        const { stdout } = await scene.sh('a2a-node agents --json')
        return stdout.includes('text.write') && stdout.includes('text.check')
      }, 'the node has the agents of the plan')
    },
    see: /stage +mend +completed[^]*completed +3 of 3 items done/
  },
  {
    page: USING,
    line: 'a2a-node policy show',
    before: (scene) =>
      newPolicy(scene, fenceOf(USING, 'the phone may look').replaceAll('node: phone', 'node: desktop')),
    see: /allow +@desktop .* none, read [^]*deny +@desktop [^]*ask +any .* write, exec /
  },
  {
    page: USING,
    line: 'a2a-node policy test --from phone --to text',
    place: () => ({ phone: 'desktop' }),
    see: /^allow {2}policy\.yaml:3/
  },
  {
    page: USING,
    line: 'a2a-node policy test --from L2 --to L0 --capability text.stats',
    see: /^deny {2}escalation: L2 to L0/
  },
  {
    page: USING,
    line: 'a2a-node approvals ls',
    before: twoWaiting,
    see: /app_\w+ +operator@desktop .* host\.report [^]*app_\w+ +operator@desktop .* text\.stats /
  },
  {
    page: USING,
    line: 'a2a-node approvals show app_4k2m',
    place: ({ approvals }) => ({ app_4k2m: approvals[0] ?? '' }),
    see: /waits for approval[^]*asks for +request, host\.report/
  },
  {
    page: USING,
    line: 'a2a-node approvals allow app_4k2m --remember',
    place: ({ approvals }) => ({ app_4k2m: approvals[0] ?? '' }),
    see: /is allowed: operator@desktop .* host\.report[^]*rule added, #/
  },
  {
    page: USING,
    line: 'a2a-node approvals deny app_9x1c',
    place: ({ approvals }) => ({ app_9x1c: approvals[1] ?? '' }),
    see: /is denied: operator@desktop .* text\.stats/
  },
  {
    page: USING,
    line: 'a2a-node logs -f --since 10m',
    isFollowing: true,
    meanwhile: (scene) => scene.sh('a2a-node stop', { on: 'desktop' }),
    see: /node laptop[^]*peer offline peer=desktop/
  },
  {
    page: USING,
    line: 'a2a-node events -f',
    isFollowing: true,
    meanwhile: (scene) => scene.sh('a2a-node start --detach', { on: 'desktop' }),
    see: /peer=desktop[^]*offline[^]*is online {2}peer=desktop/
  },
  // Without the option it lists also the peer that is online.
  {
    page: USING,
    line: 'a2a-node events --all --failed --since 10m',
    see: /^(?![^]*is online)[^]*a message was refused .*code=POLICY_DENIED/
  },
  {
    page: USING,
    line: 'a2a-node tools calls --failed',
    before: (scene) => scene.sh('a2a-node mcp serve', { input: [...MCP_CALLS, ''].join('\n') }),
    see: /a2a_nothing +tool_error .*there is no tool/
  },
  {
    page: USING,
    line: 'a2a-node metrics --prometheus',
    see: /# TYPE a2a_node_tasks_started_total counter\na2a_node_tasks_started_total \d/
  },
  { page: USING, line: 'a2a-node audit --since 1h --peer laptop', see: /membership +founded +laptop[^]*cross-tier/ },
  { page: USING, line: 'a2a-node audit --verify', see: /ok {2}\d+ lines, no link of the chains is broken/ },
  {
    page: 'docs/AGENTS.md',
    line: 'a2a-node agents import ~/.claude/agents --runtime llm --model local --tier L2 --dry-run',
    before: (scene) => {
      scene.write('.config/a2a-node/config.yaml', fenceOf('docs/AGENTS.md', 'providers:'))
      scene.write('.claude/agents/reviewer.md', '---\nname: reviewer\ndescription: Reviews code.\n---\nReview it.\n')
    },
    see: /would import {2}.*reviewer\.md {2}agent reviewer/
  },
  { page: USING, line: 'a2a-node peers rename desktop tower', see: /desktop is now called tower/ },
  { page: USING, line: 'a2a-node peers tier tower L2', see: /tower is L2 now/ },
  { page: USING, line: 'a2a-node peers revoke tower --reason sold', see: /tower .* is out of the mesh for good/ },
  { page: USING, line: 'a2a-node backup ~/laptop.backup', see: /backup of laptop \(mesh home\): .*laptop\.backup/ },
  {
    page: USING,
    line: 'a2a-node restore ~/laptop.backup --home ~/restored',
    see: /restored laptop \(mesh home\) as of/
  },
  {
    page: USING,
    line: 'a2a-node start --home ~/restored',
    before: (scene) => scene.sh('a2a-node stop'),
    isFollowing: true,
    see: /node laptop [^]*store +~\/restored/
  },
  { page: USING, line: 'a2a-node doctor', see: /ok +mesh +home[^]*ok +audit +\d+ lines hold/ },
  {
    page: USING,
    line: 'a2a-node doctor --repair',
    // The rules of the default home are beside it.
    before: (scene) => scene.sh('cp -r .local/share/a2a-node/default moved && cp .config/a2a-node/policy.yaml moved'),
    env: (scene) => ({ A2A_NODE_HOME: path.join(scene.homeOf('laptop'), 'moved') }),
    see: /repaired {2}store: .*copied or moved/
  },
  {
    page: USING,
    line: 'a2a-node doctor --new-identity --home ~/copy',
    before: (scene) => scene.sh('cp -r .local/share/a2a-node/default copy && cp .config/a2a-node/policy.yaml copy'),
    isAsking: true,
    see: /new node {2}\S+; another home of the node laptop/
  },
  {
    page: USING,
    line: 'a2a-node start --join - --home ~/copy',
    before: async (scene) => {
      await scene.sh('a2a-node start --detach')
      scene.code = (await scene.sh('a2a-node invite --mine')).stdout
    },
    input: ({ code }) => code,
    isFollowing: true,
    see: /joined the mesh home as a machine[^]*store +~\/copy/
  },
  {
    page: USING,
    line: 'a2a-node leave --dry-run',
    before: (scene) => scene.sh('a2a-node stop'),
    see: /moves +the key of the node[^]*nothing was changed/
  },
  { page: USING, line: 'a2a-node reset --dry-run', see: /removes +.*\/default\/seed\.json\n/ },
  {
    page: USING,
    line: 'a2a-node uninstall --dry-run',
    see: /removes a2a-node from .*\.claude\.json \(Claude Code\)[^]*nothing was removed/
  }
]

test('each command of README and docs has a step, and each step a command', (t: Assert) => {
  const pages = [README, ...fs.readdirSync(path.join(ROOT, 'docs')).map((name) => `docs/${name}`)]
  const shown = pages
    .filter((name) => name.endsWith('.md'))
    .flatMap((page) => shownLines(page).flatMap((line) => (OF_NPM.test(line) ? [] : [`${page}: ${line}`])))
  t.alike(shown.sort(), STEPS.map(({ page, line }) => `${page}: ${line}`).sort())
})

test('every command block of README and docs works as printed, on two machines', {
  timeout: 300_000
}, async (t: Assert) => {
  const scene = await sceneOf(t)
  for (const step of STEPS) {
    await step.before?.(scene)
    let line = step.line
    for (const [from, to] of Object.entries(step.place?.(scene) ?? {})) line = line.replaceAll(from, to)
    const options = {
      on: step.on ?? 'laptop',
      ...(step.env === undefined ? {} : { env: step.env(scene) }),
      ...(step.input === undefined ? {} : { input: step.input(scene) }),
      ...(step.isFollowing === true ? { until: step.see } : {}),
      ...(step.meanwhile === undefined ? {} : { meanwhile: step.meanwhile })
    }
    const { code, all, isInterrupted } = await scene.sh(line, options)
    const exits = step.isFollowing === true ? [0, 130, null] : [step.isAsking === true ? 2 : (step.exit ?? 0)]
    t.ok(exits.includes(code) && step.see.test(all), `${line} (exit ${code}): ${all.slice(0, 1000)}`)
    t.is(isInterrupted, step.isFollowing === true, `${line}: it ${step.isFollowing === true ? 'follows' : 'ends'}`)
    if (step.isAsking !== true) continue
    const [, next = ''] = /^ {2}try: (.*--yes.*)$/m.exec(all) ?? []
    t.is((await scene.sh(next, options)).code, 0, `the command that does not ask: ${next}`)
  }
})

async function sceneOf(t: Assert): Promise<Scene> {
  const dir = await tempDir(t)
  const scene = new Scene(dir, { port: await freePort(), httpPort: await freePort() })
  for (const name of ['bin', 'laptop/run', 'desktop/run']) fs.mkdirSync(path.join(dir, name), { recursive: true })
  fs.symlinkSync(path.join(ROOT, 'bin', 'a2a-node.js'), path.join(dir, 'bin', 'a2a-node'))
  fs.writeFileSync(path.join(dir, 'bin', 'editor'), '#!/bin/sh\necho butter >> "$1"\n', { mode: 0o755 })
  const ends = ['', ' --home ~/restored', ' --home ~/copy'].map((words) => ['laptop', `a2a-node stop${words}`] as const)
  t.teardown(
    async () => {
      for (const [on, line] of [...ends, ['desktop', 'a2a-node stop'] as const]) await scene.sh(line, { on })
    },
    { order: -1 }
  )
  return scene
}
