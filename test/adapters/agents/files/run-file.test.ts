import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import {
  type RunFileOptions,
  type RunFileReport,
  runAgentFile
} from '../../../../src/adapters/agents/files/run-file.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

const TEXT = agentText(
  'ant',
  [],
  `{ type: command, command: [sh, -c, "echo '{\\"type\\":\\"progress\\",\\"n\\":1}' >&3; echo \\"$1\\"", sh, "{input.say}"] }`
).replace(
  '    - id: subject.do',
  [
    '    - { id: first.do, input: { type: object, required: [say] } }',
    '    - { id: subject.do, default: true, input: { type: object, required: [say], properties: { say: { type: string } } }, output: { type: string, minLength: 2 } }'
  ].join('\n')
)

async function run(t: Assert, options: Partial<RunFileOptions>, text = TEXT): Promise<RunFileReport> {
  const dir = await tempDir(t)
  const file = path.join(dir, 'ant.md')
  await fs.writeFile(file, text)
  return runAgentFile({ file, input: {}, runDir: path.join(dir, 'run'), clock: realClock, ...options })
}

test('the default capability of a file is run once, with progress', async (t: Assert) => {
  const progress: unknown[] = []
  const report = await run(t, { input: { say: 'hello' }, onProgress: (data) => progress.push(data) })
  t.alike(report, { agent: 'ant', capability: 'subject.do', outcome: { ok: true, result: 'hello' } })
  t.alike(progress, [{ n: 1 }])
})

test('another capability is run by its name', async (t: Assert) => {
  t.is((await run(t, { input: { say: 'hi' }, capability: 'first.do' })).capability, 'first.do')
  const error = await failsWith(t, 'CAPABILITY_NOT_FOUND', () => run(t, { capability: 'none' }))
  t.ok(error.message.includes('first.do, subject.do'))
})

test('an input that does not fit is refused before anything runs', async (t: Assert) => {
  const error = await failsWith(t, 'INVALID_INPUT', () => run(t, { input: { say: 1 } }))
  t.ok(error.message.includes('/say must be string'), error.message)
})

test('a result that does not fit is INVALID_OUTPUT', async (t: Assert) => {
  const { outcome } = await run(t, { input: { say: 'x' } })
  t.is(outcome.ok ? 'ok' : outcome.code, 'INVALID_OUTPUT')
})

test('a broken file is refused with its faults', async (t: Assert) => {
  const error = await failsWith(t, 'AGENT_FILE_INVALID', () => run(t, {}, agentText('ant', ['  tier: L9'])))
  t.ok(/ant\.md:8: a2a\.tier/.test(error.message), error.message)
  t.is((error.data as { faults: unknown[] }).faults.length, 1)
})

test('an abort ends the run', async (t: Assert) => {
  const abort = new AbortController()
  const text = agentText(
    'ant',
    [],
    `{ type: command, command: [sh, -c, "echo '{\\"type\\":\\"progress\\"}' >&3; exec sleep 600"] }`
  )
  const { outcome } = await run(t, { signal: abort.signal, onProgress: () => abort.abort() }, text)
  t.is(outcome.ok ? 'ok' : outcome.code, 'CANCELED')
})
