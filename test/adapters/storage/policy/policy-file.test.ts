import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { openPolicyFile } from '../../../../src/adapters/storage/policy/policy-file.js'
import { ANYBODY } from '../../../../src/domain/policy/rule.js'
import type { PolicyFault, PolicySource, PolicyState } from '../../../../src/ports/policy.js'
import { asNobody } from '../../../support/as-nobody.js'
import { failsWith } from '../../../support/fails.js'
import { tempDir } from '../../../support/tmp.js'

const DENY = 'rules:\n  - decision: deny\n'

interface Opened {
  readonly file: string
  readonly source: PolicySource
  /** The next state that the watcher is told. */
  next(): Promise<PolicyState>
}

async function opened(t: Assert, text: string | null): Promise<Opened> {
  const file = path.join(await tempDir(t), 'policy.yaml')
  if (text !== null) await fs.writeFile(file, text)
  const source = await openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  // Watching alone keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => {
    clearInterval(alive)
    source.close()
  })
  const states: PolicyState[] = []
  let wake = (): void => {}
  source.watch((state) => {
    states.push(state)
    wake()
  })
  const next = async (): Promise<PolicyState> => {
    for (;;) {
      const state = states.shift()
      if (state !== undefined) return state
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { file, source, next }
}

test('no file means no rules; one that appears is in force', async (t) => {
  const { file, source, next } = await opened(t, null)
  t.alike(source.state(), { file, rules: [], faults: null })
  await fs.writeFile(file, DENY)
  t.is((await next()).rules.length, 1)
})

test('a change is reported, also one that replaces the file', async (t) => {
  const { file, next } = await opened(t, DENY)
  await fs.writeFile(`${file}.new`, `${DENY}  - decision: ask\n`)
  await fs.rename(`${file}.new`, file)
  t.is((await next()).rules.length, 2)
  await fs.writeFile(file, '')
  t.is((await next()).rules.length, 0)
})

test('a broken or vanished file leaves the last good rules and says what is wrong', async (t) => {
  const { file, source, next } = await opened(t, DENY)
  await fs.writeFile(file, 'rules:\n  - decision: deny\n    wat: 1\n')
  const broken = await next()
  t.alike([broken.rules.length, broken.faults?.list[0]?.line], [1, 3])
  await fs.rm(file)
  const gone = await next()
  t.alike([gone.rules.length, gone.faults?.list[0]?.reason.includes('gone')], [1, true])
  await fs.mkdir(file)
  t.ok(
    (await next()).faults?.list[0]?.reason.startsWith('cannot be read: '),
    'the path is printed once, by the command'
  )
  await fs.rmdir(file)
  t.ok((await next()).faults?.list[0]?.reason.includes('gone'))
  await fs.writeFile(file, DENY)
  t.is((await next()).faults, null)
  t.alike(await source.refresh(), source.state())
})

test('a broken file is not opened: CONFIG_INVALID with file and line', async (t) => {
  const file = path.join(await tempDir(t), 'policy.yaml')
  await fs.writeFile(file, 'rules:\n  - decision: no\n')
  const error = await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
  t.ok(error.message.startsWith(`${file}:2: decision:`), error.message)
  t.ok(error.next[0]?.startsWith(`less +2 ${file} `), 'and a command that shows the place')
  await fs.writeFile(file, `#${' '.repeat(300_000)}`)
  await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
  await fs.rm(file)
  await fs.mkdir(file)
  await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
})

test('a pipe of that name is refused at once, as its rules are unknown', async (t) => {
  const file = path.join(await tempDir(t), 'policy.yaml')
  spawnSync('mkfifo', [file])
  const error = await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
  t.ok(error.message.endsWith(`cannot be read: ${file} is no regular file`), error.message)
})

test('every fault of a broken file is reported at once, with file and line, up to twenty and the number of others', async (t) => {
  const file = path.join(await tempDir(t), 'policy.yaml')
  await fs.writeFile(file, 'rules:\n  - decision: Allow\n  - { decision: deny, from: { teir: L2 } }\n')
  const both = await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
  t.is(both.message, `${file}: 2 faults`)
  const { faults, moreFaults } = both.data as { faults: PolicyFault[]; moreFaults: number }
  t.alike([faults.map(({ line }) => line), moreFaults], [[2, 3], 0])
  t.ok(
    faults[0]?.reason.endsWith('did you mean allow?') && faults[1]?.reason.includes('did you mean tier?'),
    faults[1]?.reason
  )
  await fs.writeFile(file, `rules:\n${'  - decision: maybe\n'.repeat(23)}`)
  const many = await failsWith(t, 'CONFIG_INVALID', () =>
    openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  )
  t.is(many.message, `${file}: 23 faults`)
  const told = many.data as { faults: PolicyFault[]; moreFaults: number }
  t.alike([told.faults.length, told.moreFaults], [20, 3])
})

test('a file that was there once and is gone at the next start is not taken for no rules', async (t) => {
  const { file, source, next } = await opened(t, null)
  const logged: string[] = []
  const again = (): Promise<PolicySource> =>
    openPolicyFile({
      file,
      seen: `${file}.seen`,
      isNew: false,
      log: (level, message) => logged.push(`${level}: ${message}`)
    })
  const fresh = await again()
  t.is(fresh.state().rules.length, 0, 'a node that never had one starts without')
  fresh.close()
  await fs.writeFile(file, DENY)
  await next()
  source.close()
  await fs.rm(file)
  const error = await failsWith(t, 'CONFIG_INVALID', again)
  t.ok(error.message.includes('is gone'), error.message)
  t.ok(
    error.next.some((step) => step.startsWith(`touch ${file}`)),
    error.next.join()
  )
  t.alike(logged, ['error: the policy file is gone: its rules are unknown'])
  await fs.writeFile(file, '')
  const empty = await again()
  t.teardown(() => empty.close())
  t.alike(empty.state(), { file, rules: [], faults: null }, 'an empty one means no rules')
})

test('a link whose target is gone is refused and stays, in a new home and in one that never had a policy', async (t) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'policy.yaml')
  await fs.symlink('gone.yaml', file)
  for (const isNew of [true, false]) {
    const error = await failsWith(t, 'CONFIG_INVALID', () =>
      openPolicyFile({ file, seen: `${file}.seen`, isNew, log: () => {} })
    )
    t.is(error.message, `${file}: it is a link to gone.yaml, which is not there`)
  }
  t.ok((await fs.lstat(file)).isSymbolicLink())
  t.alike(await fs.readdir(dir), ['policy.yaml'], 'nothing is written')
  await fs.writeFile(path.join(dir, 'gone.yaml'), DENY)
  const source = await openPolicyFile({ file, seen: `${file}.seen`, isNew: true, log: () => {} })
  t.teardown(() => source.close())
  t.is(source.state().rules.length, 1)
})

test('a new home whose rules cannot be written does not start, and the error names the file and a step to go on', async (t) => {
  // Other users reach no directory of the test run.
  const dir = await fs.mkdtemp('/tmp/a2a-')
  t.teardown(() => fs.rm(dir, { recursive: true, force: true }))
  await fs.chmod(dir, 0o777)
  const config = path.join(dir, 'config')
  await fs.mkdir(config)
  await fs.chmod(config, 0o555)
  const file = path.join(config, 'policy.yaml')
  const printed = asNobody(`
    const { openPolicyFile } = await load('adapters/storage/policy/policy-file.js');
    /* become */
    const options = { file: ${JSON.stringify(file)}, seen: ${JSON.stringify(path.join(dir, 'seen'))}, isNew: true, log: () => {} };
    const error = await openPolicyFile(options).catch((error) => error);
    console.log(JSON.stringify({ code: error.code, message: error.message, next: error.next }));
  `)
  const { code, message, next } = JSON.parse(printed) as { code: string; message: string; next: string[] }
  t.is(code, 'NO_PERMISSION')
  t.ok(message.startsWith(`the rules of a new home cannot be written to ${file}: no permission`), message)
  t.ok(next.at(-1)?.startsWith(`touch ${file} `), next.join())
  await fs.writeFile(file, '')
  const source = await openPolicyFile({ file, seen: path.join(dir, 'seen'), isNew: true, log: () => {} })
  t.teardown(() => source.close())
  t.alike(source.state().rules, [], 'the step helps')
})

const RULE = {
  from: ANYBODY,
  to: ANYBODY,
  capability: ['a.b'],
  type: null,
  sideEffect: null,
  decision: 'allow'
} as const

test('an inserted rule is on disk and reported; a link stays a link', async (t) => {
  const dir = await tempDir(t)
  await fs.writeFile(path.join(dir, 'real.yaml'), '# mine\nrules:\n  - decision: ask\n')
  const file = path.join(dir, 'policy.yaml')
  await fs.symlink('real.yaml', file)
  const source = await openPolicyFile({ file, seen: `${file}.seen`, isNew: false, log: () => {} })
  t.teardown(() => source.close())
  t.alike(await source.insert(RULE, { beforeLine: 3, note: 'why' }), {
    line: 3,
    text: '{ capability: a.b, decision: allow }'
  })
  t.is(
    await fs.readFile(path.join(dir, 'real.yaml'), 'utf8'),
    '# mine\nrules:\n  - { capability: a.b, decision: allow } # why\n  - decision: ask\n'
  )
  t.ok((await fs.lstat(file)).isSymbolicLink())
  t.is(source.state().rules.length, 2)
  t.alike((await fs.readdir(dir)).sort(), ['policy.yaml', 'policy.yaml.seen', 'real.yaml'])
})

test('a file that was broken meanwhile takes no rule and is left as it is', async (t) => {
  const { file, source } = await opened(t, DENY)
  await fs.writeFile(file, 'rules: [')
  const error = await failsWith(t, 'CONFIG_INVALID', () => source.insert(RULE, { beforeLine: 2, note: '' }))
  t.ok(error.message.includes(`${file}:1: `), error.message)
  t.is(await fs.readFile(file, 'utf8'), 'rules: [')
})
