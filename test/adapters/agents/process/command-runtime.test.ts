import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { isRunning } from '../../../support/agents/eventually.js'
import { type AgentOptions, commandSpec, failureText, openAgent, resultOf } from '../../../support/agents/open-agent.js'
import { recordedRun, taskOf } from '../../../support/agents/task.js'
import type { Question, QuestionAnswer } from '../../../../src/domain/task/question.js'
import type { AgentOutcome } from '../../../../src/ports/agent-runtime.js'

/** Runs a command once, without progress. */
async function run(
  t: Assert,
  command: readonly string[],
  { input = {}, ...options }: AgentOptions & { input?: unknown } = {}
): Promise<AgentOutcome> {
  const { agent } = await openAgent(t, commandSpec(command), options)
  return agent.run(taskOf('subject.do', input), recordedRun())
}

test('stdin is one line of compact JSON with the task, then its end', async (t: Assert) => {
  const result = resultOf(await run(t, ['sh', '-c', 'cat; echo END'], { input: { a: ['x'] } }))
  const line =
    '{"taskId":"task_1","requestId":"req_1","attempt":1,"capability":"subject.do","description":"a test","swarm":null,"input":{"a":["x"]}}'
  t.is(result, `${line}\nEND`)
})

test('stdout is JSON when it parses, else text without its last newline', async (t: Assert) => {
  t.alike(resultOf(await run(t, ['echo', '{"n": 1}'])), { n: 1 })
  t.is(resultOf(await run(t, ['echo', '42'])), 42)
  t.is(resultOf(await run(t, ['printf', 'two\\nlines\\n'])), 'two\nlines')
  t.is(resultOf(await run(t, ['true'])), '')
})

const BINARY = { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' }

/** Outputs of programs in octal escapes of printf, and whether they are UTF-8. */
const OUTPUTS: readonly (readonly [name: string, octal: string, bytes: readonly number[], text: string | null])[] = [
  ['an image', '\\211PNG\\000\\001', [0x89, 0x50, 0x4e, 0x47, 0, 1], null],
  ['Latin-1 text', 'caf\\351', [0x63, 0x61, 0x66, 0xe9], null],
  ['half a character', 'a\\342\\202', [0x61, 0xe2, 0x82], null],
  ['UTF-16 with its mark', '\\377\\376a\\000', [0xff, 0xfe, 0x61, 0], null],
  ['UTF-8 with a NUL and a line break', 'a\\000\\303\\251\\n', [0x61, 0, 0xc3, 0xa9, 0x0a], 'a\0é'],
  ['nothing', '', [], '']
]

test('bytes of a program travel as bytes, or its task fails clearly', async (t: Assert) => {
  for (const [name, octal, bytes, text] of OUTPUTS) {
    const command = ['printf', octal]
    t.is(resultOf(await run(t, command, { output: BINARY })), Buffer.from(bytes).toString('base64'), name)
    const plain = await run(t, command)
    if (text !== null) t.is(resultOf(plain), text, `${name} is text`)
    else
      t.ok(
        /no UTF-8 text.*contentEncoding: base64/.test(failureText(t, 'INVALID_OUTPUT', plain)),
        `${name} is refused as text`
      )
  }
  t.is(resultOf(await run(t, ['printf', '42'], { output: BINARY })), 'NDI=', 'bytes are not read as JSON')
})

test('a result nested too deeply, or with a key that is not allowed, is INVALID_OUTPUT', async (t: Assert) => {
  failureText(t, 'INVALID_OUTPUT', await run(t, ['echo', '['.repeat(40) + ']'.repeat(40)]))
  failureText(t, 'INVALID_OUTPUT', await run(t, ['echo', '{"__proto__": 1}']))
})

test('a value of the input is one argument, and no shell reads it', async (t: Assert) => {
  const value = '$(touch x); "a  b" \'c\' `d` * {input.value} \\'
  const result = resultOf(await run(t, ['printf', '<%s>', '{input.value}', 'end'], { input: { value } }))
  t.is(result, `<${value}><end>`)
})

test('a missing value fails before anything is started, with its name', async (t: Assert) => {
  const { agent, runDir } = await openAgent(t, commandSpec(['echo', '{input.file}']))
  t.ok(/input\.file/.test(failureText(t, 'TASK_FAILED', await agent.run(taskOf('subject.do', {}), recordedRun()))))
  await t.exception(fs.readdir(runDir), /ENOENT/, 'not even a record was written')
})

test('the environment is PATH, HOME, LANG, TMPDIR and the variables that the file names', async (t: Assert) => {
  const spec = commandSpec(['env'], { env: { NAMED: 'yes', LANG: 'C.UTF-8' } })
  const { agent } = await openAgent(t, spec, {
    env: { ...process.env, HOME: '/nowhere', TMPDIR: '/tmp', SECRET: 'token' }
  })
  const lines = String(resultOf(await agent.run(taskOf('subject.do', {}), recordedRun()))).split('\n')
  // A shell that is bash leaves SHLVL and _ behind.
  const names = lines.map((line) => line.slice(0, line.indexOf('='))).filter((name) => name !== '_' && name !== 'SHLVL')
  t.alike(names.sort(), ['HOME', 'LANG', 'NAMED', 'PATH', 'TMPDIR'])
  t.ok(lines.includes('LANG=C.UTF-8') && lines.includes('HOME=/nowhere'))
})

test('a file may set what the launcher would take back', async (t: Assert) => {
  const { agent } = await openAgent(t, commandSpec(['env'], { env: { SHLVL: '7', OLDPWD: '/old' } }))
  const lines = String(resultOf(await agent.run(taskOf('subject.do', {}), recordedRun()))).split('\n')
  t.ok(lines.includes('OLDPWD=/old'))
})

test('the program runs in its working directory, and a relative one is found from there', async (t: Assert) => {
  const { agent, dir } = await openAgent(t, commandSpec(['pwd'], { cwd: '/' }))
  t.is(resultOf(await agent.run(taskOf('subject.do', {}), recordedRun())), '/')
  await fs.writeFile(path.join(dir, 'here.sh'), '#!/bin/sh\necho found\n', { mode: 0o755 })
  const near = await openAgent(t, commandSpec(['./here.sh'], { cwd: dir }))
  t.is(resultOf(await near.agent.run(taskOf('subject.do', {}), recordedRun())), 'found')
})

test('a program that does not read its input does not fail', async (t: Assert) => {
  t.is(resultOf(await run(t, ['sh', '-c', 'exec 0<&-; echo fine'], { input: { long: 'x'.repeat(2_000_000) } })), 'fine')
})

test('a non-zero exit fails with the end of stderr, a signal with its name', async (t: Assert) => {
  const message = failureText(
    t,
    'TASK_FAILED',
    await run(t, ['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do echo noise >&2; i=$((i+1)); done; echo last >&2; exit 4'])
  )
  t.ok(message.includes('exit code 4') && message.endsWith('last'), message.slice(-40))
  t.ok(message.length < 2300, 'and not all of it')
  t.ok(/SIGSEGV/.test(failureText(t, 'TASK_FAILED', await run(t, ['sh', '-c', 'kill -SEGV $$']))))
})

test('a program, or a directory, that is not there is a clear failure', async (t: Assert) => {
  t.ok(/no-such-program was not found/.test(failureText(t, 'TASK_FAILED', await run(t, ['no-such-program']))))
  const { agent } = await openAgent(t, commandSpec(['true'], { cwd: '/no/such/dir' }))
  t.ok(
    /\/no\/such\/dir does not exist/.test(
      failureText(t, 'TASK_FAILED', await agent.run(taskOf('subject.do', {}), recordedRun()))
    )
  )
})

test('an input too long for a command line is a failure, not an exception', async (t: Assert) => {
  t.ok(
    /could not be started/.test(
      failureText(t, 'TASK_FAILED', await run(t, ['echo', '{input.a}'], { input: { a: 'x'.repeat(3_000_000) } }))
    )
  )
})

test('lines on descriptor 3 are progress when they say so; others are ignored', async (t: Assert) => {
  const script = [
    'echo \'{"type":"progress","done":1}\' >&3',
    'echo not json >&3',
    'echo \'{"type":"other"}\' >&3',
    'echo \'["progress"]\' >&3',
    'head -c 100000 /dev/zero | tr "\\0" x >&3; echo >&3',
    'printf \'{"type":"progress","text":"half\' >&3; printf \' and half"}\' >&3'
  ]
  const { agent } = await openAgent(t, commandSpec(['sh', '-c', script.join('\n')]))
  const recorded = recordedRun()
  resultOf(await agent.run(taskOf('subject.do', {}), recorded))
  t.alike(recorded.reports, [{ done: 1 }, { text: 'half and half' }])
})

test('processes that a program leaves in its group end with it', async (t: Assert) => {
  const { agent, runDir } = await openAgent(t, commandSpec(['sh', '-c', 'sleep 600 & echo $!']))
  const pid = Number(resultOf(await agent.run(taskOf('subject.do', {}), recordedRun())))
  t.ok(pid > 1)
  t.absent(isRunning(pid))
  t.alike(await fs.readdir(runDir), [])
})

test('a process that left the group and holds the output open holds nothing up', async (t: Assert) => {
  // It is out of reach, so that the test itself has to end it.
  const script = `const { spawn } = require('node:child_process')
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'inherit' })
    child.unref()
    process.stdout.write(String(child.pid))`
  const pid = Number(resultOf(await run(t, [process.execPath, '-e', script])))
  process.kill(pid, 'SIGKILL')
  t.ok(pid > 1)
})

test('while a task runs, its process group stands on record', async (t: Assert) => {
  const { agent, runDir } = await openAgent(
    t,
    commandSpec(['sh', '-c', 'echo \'{"type":"progress"}\' >&3; exec sleep 600'])
  )
  const recorded = recordedRun()
  const running = agent.run(taskOf('subject.do', {}), recorded)
  await recorded.report()
  const [name = ''] = await fs.readdir(runDir)
  t.is((JSON.parse(await fs.readFile(path.join(runDir, name), 'utf8')) as { requestId: string }).requestId, 'req_1')
  recorded.abort()
  failureText(t, 'CANCELED', await running)
  t.alike(await fs.readdir(runDir), [])
})

test('a program whose group cannot be recorded never runs', async (t: Assert) => {
  const { agent, dir, runDir } = await openAgent(t, commandSpec(['touch', '{input.mark}']))
  await fs.writeFile(runDir, 'in the way')
  const mark = path.join(dir, 'mark')
  failureText(t, 'TASK_FAILED', await agent.run(taskOf('subject.do', { mark }), recordedRun()))
  await t.exception(fs.stat(mark), /ENOENT/)
})

/** A program that asks `count` times at once, and gives the answers when it has them all or stdin ends. */
const ASKER = `
const fs = require('node:fs')
const say = (line) => fs.writeSync(3, JSON.stringify(line) + '\\n')
const schema = { type: 'object', properties: { name: { type: 'string' } } }
const answers = []
let count = 0
const end = () => {
  console.log(JSON.stringify(answers))
  process.exit(0)
}
const lines = require('node:readline').createInterface({ input: process.stdin })
lines.on('close', end)
lines.on('line', (line) => {
  const { type, input, ...answer } = JSON.parse(line)
  if (type === 'answer') {
    answers.push(answer)
    if (answers.length === count) end()
    return
  }
  count = input.count
  say({ type: 'ask', id: {}, message: 'malformed', schema })
  for (let id = 1; id <= count; id++) say({ type: 'ask', id, message: 'Which ' + id, schema })
})
`

test('a program that asks gets each answer of its caller as a line on stdin', async (t: Assert) => {
  const { agent } = await openAgent(t, commandSpec([process.execPath, '-e', ASKER], { asks: true }))
  const asked: Question[] = []
  const answers: QuestionAnswer[] = [
    { ok: true, result: { action: 'accept', content: { name: 'Ada' } } },
    { ok: true, result: { action: 'decline' } },
    { ok: false, message: 'nobody is there' }
  ]
  const ask = (question: Question): Promise<QuestionAnswer> => {
    asked.push(question)
    return Promise.resolve(answers[(asked.length - 1) % 3] ?? answers[0])
  }
  const caller = { takes: ['form'], logLevel: null, ask, log: () => {} } as const
  const given = await agent.run(taskOf('subject.do', { count: 3 }), { ...recordedRun(), caller })
  t.alike(resultOf(given), [
    { id: 1, content: { name: 'Ada' } },
    { id: 2, content: null },
    { id: 3, error: 'nobody is there' }
  ])
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } }
  t.alike(asked[0], {
    method: 'elicitation/create',
    params: { mode: 'form', message: 'Which 1', requestedSchema }
  })
  t.is(asked.length, 3, 'a question without an id is skipped')
  const alone = resultOf(await agent.run(taskOf('subject.do', { count: 1 }), recordedRun()))
  t.alike(alone, [{ id: 1, error: 'the caller of this task answers no questions' }])
  const many = resultOf(await agent.run(taskOf('subject.do', { count: 70 }), { ...recordedRun(), caller }))
  t.is((many as readonly unknown[]).length, 64, 'a 65th question ends stdin')
})
