import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { ROOT } from '../../../support/nodes.js'
import { DATA } from '../cases.js'
import type { Verdict } from '../run-case.js'
import type { ForeignClient } from './checks.js'
import { NO_LIST } from './js-old-client.js'

const SOURCES = path.join(DATA, 'clients')
/** Where libraries and programs of other languages are kept between runs. */
const KEPT = path.join(ROOT, 'build', '.clients')
/** Milliseconds for one step of an installation, and for all checks of a client. */
const INSTALL_MS = 600_000
const RUN_MS = 90_000

/** The Python program of the installed SDK. */
export const PYTHON = path.join(KEPT, 'python', 'bin', 'python')

type Command = readonly [program: string, ...args: string[]]

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end; null: it is not on this machine. */
function ran(
  [program, ...args]: Command,
  { cwd, env = {}, ms }: { cwd: string; env?: object; ms: number }
): Promise<Ran | null> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      timeout: ms,
      stdio: ['ignore', 'pipe', 'pipe']
    })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => void (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => void (stderr += text))
    child.on('error', () => resolve(null))
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

/** Runs commands one after the other. Why they cannot run here; null: all ended well. */
async function prepared(commands: readonly Command[], cwd: string): Promise<string | null> {
  fs.mkdirSync(KEPT, { recursive: true })
  for (const command of commands) {
    const result = await ran(command, { cwd, ms: INSTALL_MS })
    if (result === null) return `${command[0]} is not on this machine`
    if (result.code !== 0)
      return `${path.basename(command[0])} could not install it: ${(result.stderr + result.stdout).trim().split('\n').at(-1) ?? ''}`
  }
  return null
}

interface Program {
  readonly name: string
  readonly transports: ForeignClient['transports']
  readonly lacks?: ForeignClient['lacks']
  /** Where the commands run. */
  readonly dir: string
  readonly install: readonly Command[]
  readonly start: Command
}

/** A client in another language: a program that prints a line of JSON for each check. */
function programClient({ name, transports, lacks = {}, dir, install, start }: Program): ForeignClient {
  return {
    name,
    transports,
    lacks,
    prepare: () => prepared(install, dir),
    async run({ url, token, hook }, transport) {
      const env = { A2A_TOKEN: token, A2A_HOOK: hook }
      const result = await ran([...start, url, transport], { cwd: dir, env, ms: RUN_MS })
      return readChecks(result ?? { code: null, stdout: '', stderr: 'it is gone' })
    }
  }
}

/** Reads the lines of a program. What it did not do failed with its last words. */
export function readChecks({ stdout, stderr }: Ran): ReadonlyMap<string, Verdict> {
  const verdicts = new Map<string, Verdict>()
  for (const line of stdout.split('\n')) {
    if (!line.startsWith('{')) continue
    const { check, ok, why = '' } = JSON.parse(line) as { check: string; ok: boolean; why?: string }
    verdicts.set(check, ok ? { state: 'passed' } : { state: 'failed', why })
  }
  const last = stderr.trim().split('\n').at(-1) ?? ''
  if (last !== '') verdicts.set('', { state: 'failed', why: last })
  return verdicts
}

/** Installs the SDK of Python into a place of its own. */
const PYTHON_INSTALL: readonly Command[] = [
  ['python3', '-m', 'venv', path.join(KEPT, 'python')],
  [
    PYTHON,
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    'a2a-sdk[http-server]==1.3.0',
    'uvicorn==0.38.0'
  ]
]

/** Makes the SDK of Python ready. Why it cannot; null: it is. */
export function preparePython(): Promise<string | null> {
  return prepared(PYTHON_INSTALL, SOURCES)
}

const JARS = path.join(KEPT, 'java', 'jars')
const CLASSES = path.join(KEPT, 'java', 'classes')
const GO_CLIENT = path.join(KEPT, 'go-client')

/** The clients in other languages. */
export const PROGRAMS: readonly ForeignClient[] = [
  programClient({
    name: 'a2a-python 1.3.0',
    transports: ['JSONRPC', 'HTTP+JSON'],
    dir: SOURCES,
    install: PYTHON_INSTALL,
    start: [PYTHON, path.join(SOURCES, 'client.py')]
  }),
  programClient({
    name: 'a2a-go 0.3.3',
    transports: ['JSONRPC'],
    lacks: NO_LIST,
    dir: path.join(SOURCES, 'go'),
    install: [['go', 'build', '-o', GO_CLIENT, '.']],
    start: [GO_CLIENT]
  }),
  programClient({
    name: 'a2a-java 1.0.0.Alpha3',
    transports: ['JSONRPC', 'HTTP+JSON'],
    dir: path.join(SOURCES, 'java'),
    install: [
      ['mvn', '-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${JARS}`],
      ['javac', '-cp', `${JARS}/*`, '-d', CLASSES, 'Client.java']
    ],
    start: ['java', '-cp', `${JARS}/*${path.delimiter}${CLASSES}`, 'Client']
  })
]
