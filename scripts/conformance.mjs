#!/usr/bin/env node
// Runs the official MCP conformance runner: `npm run conformance [-- --verbose]`. First on a server of fixtures by the
// MCP runtime, then on a node that imports it, and on a node one hop away, both with a token. It needs Node 22, and the
// package registry; without Node 22 it says so and ends with 0. Exit code 1 when something fails that is not expected
// to (test/conformance/expected-*.yml), or passes that is.
// `npm run conformance -- a2a` runs the cases of A2A and foreign clients instead (test/conformance/a2a). Last line:
// `N passed, N failed, N skipped`. The same exit code, with test/conformance/a2a/expected.yml.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { conformsToA2A } from './conformance/a2a.mjs'
import { fetchRunner, nodeForRunner, RUNS } from './conformance/runner.mjs'
import { compileTests } from './testing/compile.mjs'

const SERVER = path.resolve('test/conformance/expected-failures.yml')
const SHIPPED = path.resolve('test/conformance/expected-shipped.yml')

/** The endpoints of one run: the server itself and both ways to it. */
const PLACES = [
  { place: 'direct', about: 'the server', expected: SERVER },
  { place: 'here', about: 'imported here', expected: SHIPPED },
  { place: 'hop', about: 'imported one hop away', expected: SHIPPED }
]

/** Runs the runner. Resolves with its exit code and what it printed. */
function run(node, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NO_COLOR: '1' } })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** One run of one place. Prints its summary; true when all went as expected. */
async function conforms({ node, program, dir, isVerbose }, { version, args }, { url, about, expected }) {
  const results = path.join(dir, 'results')
  const all = ['server', '--url', url.href, ...args, '--expected-failures', expected, '--output-dir', results]
  const { code, output } = await run(node, [program, ...all], dir)
  const at = output.indexOf('=== SUMMARY ===')
  console.log(`\nconformance ${version} ${args.join(' ')}, ${about}: exit code ${code}`)
  console.log(isVerbose || at === -1 ? output : output.slice(at).trim())
  return code === 0
}

/** All places of one run, with nodes of their own. The number of places that went otherwise than expected. */
async function failures(running, one) {
  const ends = []
  try {
    const urls = await running.serve({ teardown: (end) => ends.unshift(end) })
    let failed = 0
    for (const { place, ...rest } of PLACES)
      if (!(await conforms(running, one, { url: urls[place], ...rest }))) failed++
    return failed
  } finally {
    for (const end of ends) await end()
  }
}

async function main() {
  const options = { verbose: { type: 'boolean', default: false } }
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (positionals[0] === 'a2a') {
    process.exitCode = (await conformsToA2A()) ? 0 : 1
    return
  }
  if (positionals.length > 0) throw new Error(`no conformance tests are called ${positionals[0]}; a2a are`)
  const { node, skipped } = nodeForRunner({
    execPath: process.execPath,
    version: process.versions.node,
    env: process.env
  })
  if (skipped !== undefined) return console.log(`skipped: ${skipped}`)
  const { serveShipped: serve } = await compileTests('test/conformance/shipped.js')
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'a2a-conformance-'))
  process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }))
  const programs = new Map(
    [...new Set(RUNS.map(({ version }) => version))].map((version) => [version, fetchRunner(version, dir)])
  )
  let failed = 0
  for (const one of RUNS)
    failed += await failures({ node, program: programs.get(one.version), serve, dir, isVerbose: values.verbose }, one)
  const count = RUNS.length * PLACES.length
  console.log(`\n${count - failed} of ${count} runs as expected`)
  process.exitCode = failed === 0 ? 0 : 1
}

await main()
